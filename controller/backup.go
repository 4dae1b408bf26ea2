package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// Saved is a backup of the assignment and its settings. It is what Restore takes.
type Saved struct {
	Version  int          `json:"v"`
	Route    string       `json:"route"`
	Time     time.Time    `json:"time"`
	Topics   []SavedTopic `json:"topics"`
	Excluded []string     `json:"excluded"`
	Draining []string     `json:"draining"`
}

// SavedTopic is one topic of a backup.
type SavedTopic struct {
	Topic      string           `json:"topic"`
	Partitions int32            `json:"partitions"`
	Owners     map[int32]string `json:"owners"`
	Off        []int32          `json:"off,omitempty"` // partitions that are taken off
	// Settings are what operators have set; nil if there is nothing.
	Settings *operator.Topic `json:"settings,omitempty"`
}

// SavedVersion is the version of Saved that this code writes and reads.
const SavedVersion = 1

// Save gives a backup.
func (t *Term) Save() Saved {
	s := t.cluster.State()
	out := Saved{Version: SavedVersion, Route: t.deps.Route.String(), Time: time.Now().UTC(), Topics: []SavedTopic{}, Excluded: []string{}, Draining: []string{}}
	for _, name := range s.names() {
		topic := s.Topics[name]
		saved := SavedTopic{Topic: name, Partitions: topic.Partitions, Owners: map[int32]string{}}
		for p := range topic.Partitions {
			if owner := topic.Owner(p); owner != "" {
				saved.Owners[p] = owner
			}
			if topic.Off(p) {
				saved.Off = append(saved.Off, p)
			}
		}
		if set, ok := s.Settings[name]; ok && !set.IsZero() {
			saved.Settings = &set
		}
		out.Topics = append(out.Topics, saved)
	}
	out.Excluded = append(out.Excluded, sortedKeys(s.Excluded)...)
	for _, id := range sortedKeys(s.Workers) {
		if s.Workers[id].Draining {
			out.Draining = append(out.Draining, id)
		}
	}
	return out
}

// Restore brings back what a backup has and the cluster has not: topics, partitions, settings, exclusions, what is taken off or drained. Nothing is taken
// away, and partitions go to the workers that the backup names if these are there and the partitions have no owner yet. *InvalidError.
func (t *Term) Restore(ctx context.Context, saved Saved) error {
	if saved.Version != SavedVersion {
		return &InvalidError{Key: "v", Value: saved.Version, Reason: fmt.Sprintf("must be %d", SavedVersion)}
	}
	for _, topic := range saved.Topics {
		if err := checkTopic(topic.Topic, topic.Partitions); err != nil {
			return err
		}
		if topic.Settings != nil {
			if err := invalid(topic.Settings.Validate()); err != nil {
				return fmt.Errorf("settings of topic %s: %w", topic.Topic, err)
			}
		}
	}
	for _, name := range saved.Excluded {
		if err := t.cluster.Exclude(ctx, name, true); err != nil {
			return fmt.Errorf("restore the exclusion of topic %s: %w", name, err)
		}
	}
	for _, id := range saved.Draining {
		if err := t.cluster.Drain(ctx, id, true); err != nil && !isGone(err) {
			return fmt.Errorf("restore the draining of worker %s: %w", id, err)
		}
	}
	for _, topic := range saved.Topics {
		if err := t.restoreTopic(ctx, topic); err != nil {
			return fmt.Errorf("restore topic %s: %w", topic.Topic, err)
		}
	}
	t.wake()
	return nil
}

func (t *Term) restoreTopic(ctx context.Context, saved SavedTopic) error {
	err := t.change(ctx, func(s *State) error {
		topic, exists := s.Topics[saved.Topic]
		topic.Name, topic.Partitions = saved.Topic, max(topic.Partitions, saved.Partitions)
		topic = topic.Clone()
		for p, owner := range saved.Owners {
			if topic.Owner(p) == "" && s.Workers[owner].usable() {
				topic.Assigned[p] = map[string]string{owner: Online}
			}
		}
		topic = t.place(s, []Topic{topic})[0]
		if !exists {
			return t.cluster.Create(ctx, topic)
		}
		return t.cluster.Write(ctx, []Topic{topic})
	})
	for _, p := range saved.Off {
		var already *AlreadyError
		if err == nil {
			if err = t.TakeOff(ctx, route.Partition{Topic: saved.Topic, Partition: p}, true); errors.As(err, &already) {
				err = nil
			}
		}
	}
	if err != nil || saved.Settings == nil {
		return err
	}
	return t.configure(ctx, saved.Topic, func(now *operator.Topic) {
		if now.IsZero() {
			*now = saved.Settings.Clone()
		}
	})
}

// backups writes the assignment into a folder when it has changed.
type backups struct {
	term *Term
	last []byte
}

func newBackups(t *Term) *backups { return &backups{term: t} }

// gitTimeout bounds one call of git.
const gitTimeout = time.Minute

// run writes what has changed since the last run. An empty cluster is not written over a full backup.
func (b *backups) run(ctx context.Context) error {
	saved := b.term.Save()
	if len(saved.Topics) == 0 {
		return nil
	}
	at := saved.Time
	saved.Time = time.Time{} // it alone is no change
	content, err := json.Marshal(saved)
	if err != nil || bytes.Equal(content, b.last) {
		return err
	}
	saved.Time = at
	cfg := b.term.cfg.Backup
	if err = prepareFolder(ctx, cfg); err != nil {
		return err
	}
	files := b.term.backupFiles(saved)
	for name, body := range files {
		if err = replaceFile(filepath.Join(cfg.Dir, name), body); err != nil {
			return fmt.Errorf("write a backup: %w", err)
		}
	}
	if cfg.Git != "" {
		if err = push(ctx, cfg.Dir); err != nil {
			return fmt.Errorf("push a backup: %w", err)
		}
	}
	b.last = content
	return nil
}

// backupFiles gives the files of a backup by name: our own, and the two that uReplicator's tools read.
func (t *Term) backupFiles(saved Saved) map[string]any {
	type ideal struct {
		Topic string     `json:"topic"`
		Meta  Assignment `json:"idealStateMeta"`
	}
	type view struct {
		Topic    string     `json:"topic"`
		Ideal    Assignment `json:"idealState"`
		External Assignment `json:"externalView"`
	}
	s := t.cluster.State()
	ideals, views := []ideal{}, []view{}
	for _, name := range s.names() {
		ideals = append(ideals, ideal{Topic: name, Meta: s.Topics[name].Assigned})
		views = append(views, view{Topic: name, Ideal: s.Topics[name].Assigned, External: s.Views[name]})
	}
	suffix := ""
	if name := t.cfg.Backup.Name; name != "" {
		suffix = "-" + name
	}
	return map[string]any{
		"causeway-backup" + suffix + ".json": saved, "idealState-backup" + suffix: ideals, "partitionAssgn-backup" + suffix: views,
	}
}

// replaceFile writes JSON so that a reader sees the old file or the new one.
func replaceFile(path string, body any) error {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		return err
	}
	if err = os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// prepareFolder makes the folder for backups, as a clone where there is a repository.
func prepareFolder(ctx context.Context, cfg Backup) error {
	if cfg.Git != "" {
		if _, err := os.Stat(filepath.Join(cfg.Dir, ".git")); errors.Is(err, os.ErrNotExist) {
			return git(ctx, filepath.Dir(cfg.Dir), "clone", "--", cfg.Git, cfg.Dir)
		}
	}
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("make the folder for backups: %w", err)
	}
	return nil
}

// push commits and pushes what is in a clone.
func push(ctx context.Context, dir string) error {
	return errors.Join(
		git(ctx, dir, "add", "--all"),
		git(ctx, dir, "-c", "user.name=causeway", "-c", "user.email=causeway@localhost", "commit", "--allow-empty", "--message", "assignment"),
		git(ctx, dir, "push", "origin", "HEAD"),
	)
}

// git runs one command in a folder.
func git(ctx context.Context, dir string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // fixed words, and the configured repository and folder
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
