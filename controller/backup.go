package controller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/internal/replace"
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
	// BalancingOff says that an operator has turned the moving of partitions off.
	BalancingOff bool `json:"balancing_off,omitempty"`
}

// SavedTopic is one topic of a backup.
type SavedTopic struct {
	Topic      string           `json:"topic"`
	Partitions int32            `json:"partitions"`
	Owners     map[int32]string `json:"owners"`
	Off        []int32          `json:"off,omitempty"` // partitions that are taken off
	// Pins are the workers that partitions were moved to by hand.
	Pins map[int32]string `json:"pins,omitempty"`
	// Settings are what operators have set; nil if there is nothing.
	Settings *operator.Topic `json:"settings,omitempty"`
}

// SavedVersion is the version of Saved that this code writes and reads.
const SavedVersion = 1

// Save gives a backup.
func (t *Term) Save() Saved {
	s := t.cluster.State()
	out := Saved{Version: SavedVersion, Route: t.deps.Route.String(), Time: time.Now().UTC(), Topics: []SavedTopic{}, Excluded: []string{}, Draining: []string{}, BalancingOff: !s.Balancing}
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
			if worker := s.Pins[route.Partition{Topic: name, Partition: p}]; worker != "" {
				if saved.Pins == nil {
					saved.Pins = map[int32]string{}
				}
				saved.Pins[p] = worker
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

// Restore brings back what a backup has and the cluster has not: topics, partitions, settings, exclusions, what is taken off, drained or moved
// by hand, and that nothing shall move. Nothing is taken away, and partitions go to the workers that the backup names if these are there and the partitions have no owner yet.
// *InvalidError.
func (t *Term) Restore(ctx context.Context, saved Saved) error {
	if saved.Version != SavedVersion {
		return &InvalidError{Key: "v", Value: saved.Version, Reason: fmt.Sprintf("must be %d", SavedVersion)}
	}
	for _, topic := range saved.Topics {
		if err := topic.check(); err != nil {
			return err
		}
	}
	for _, name := range saved.Excluded {
		if err := checkTopic(name, 0); err != nil {
			return err
		}
	}
	for _, name := range saved.Excluded {
		if err := t.cluster.Exclude(ctx, name, true); err != nil {
			return fmt.Errorf("restore the exclusion of topic %s: %w", name, err)
		}
	}
	if saved.BalancingOff && t.cluster.State().Balancing {
		if err := t.cluster.SetBalancing(ctx, false); err != nil {
			return fmt.Errorf("restore that balancing is off: %w", err)
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

// check says what can't be. *InvalidError.
func (s SavedTopic) check() error {
	if err := checkTopic(s.Topic, s.Partitions); err != nil {
		return err
	}
	for _, p := range slices.Concat(s.Off, slices.Collect(maps.Keys(s.Owners)), slices.Collect(maps.Keys(s.Pins))) {
		if p < 0 || p >= s.Partitions {
			return &InvalidError{Key: "partition", Value: p, Reason: fmt.Sprintf("topic %s has %d", s.Topic, s.Partitions)}
		}
	}
	for p, worker := range s.Pins {
		if worker == "" {
			return &InvalidError{Key: "pins", Value: p, Reason: "must name a worker"}
		}
	}
	if s.Settings != nil {
		if err := invalid(s.Settings.Validate()); err != nil {
			return fmt.Errorf("settings of topic %s: %w", s.Topic, err)
		}
	}
	return nil
}

// restoreTopic writes the settings and the pins first, and what is taken off together with the topic: nothing runs for a moment that shall not.
func (t *Term) restoreTopic(ctx context.Context, saved SavedTopic) error {
	return t.change(ctx, func(s *State) error {
		if s.Torn[saved.Topic] {
			return s.mirrored(saved.Topic)
		}
		if saved.Settings != nil && s.Settings[saved.Topic].IsZero() {
			if err := t.cluster.Configure(ctx, saved.Topic, func(now *operator.Topic) { *now = saved.Settings.Clone() }); err != nil {
				return err
			}
		}
		for n, worker := range saved.Pins {
			if p := (route.Partition{Topic: saved.Topic, Partition: n}); s.Pins[p] == "" {
				if err := t.cluster.Pin(ctx, p, worker); err != nil {
					return err
				}
			}
		}
		was, exists := s.Topics[saved.Topic]
		topic, err := t.restored(s, was.Clone(), saved)
		if err != nil {
			return err
		}
		if exists {
			return t.cluster.Write(ctx, []Topic{topic})
		}
		var there *ExistsError
		if err = t.cluster.Create(ctx, topic); errors.As(err, &there) {
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
		return err
	})
}

// restored is a topic with what a backup has of it beside. *InvalidError if nobody is there to note at that a partition is taken off.
func (t *Term) restored(s *State, topic Topic, saved SavedTopic) (Topic, error) {
	topic.Name, topic.Partitions = saved.Topic, max(topic.Partitions, saved.Partitions)
	for p, owner := range saved.Owners {
		if topic.Owner(p) == "" && s.Workers[owner].usable() {
			topic.Assigned[p] = map[string]string{owner: Online}
		}
	}
	topic = t.place(s, []Topic{topic})[0]
	for _, p := range saved.Off {
		owner := cmp.Or(topic.Owner(p), saved.Owners[p])
		if owner == "" {
			return Topic{}, &InvalidError{Key: "partition", Value: p, Reason: "no worker is there to note at that it is taken off"}
		}
		topic.Assigned[p] = map[string]string{owner: Offline}
	}
	return topic, nil
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
	if torn := b.term.State().Torn; len(torn) > 0 {
		return fmt.Errorf("the last backup stays: the ideal states of %s can't be read", strings.Join(slices.Sorted(maps.Keys(torn)), ", "))
	}
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
		if err = writeJSON(filepath.Join(cfg.Dir, name), body); err != nil {
			return fmt.Errorf("write a backup: %w", err)
		}
	}
	if cfg.Git != "" {
		if err = push(ctx, cfg.Dir, sortedKeys(files)); err != nil {
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

// writeJSON puts a file in place of an older one.
func writeJSON(path string, body any) error {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		return err
	}
	return replace.File(path, append(text, '\n'))
}

// prepareFolder makes the folder for backups, as a clone where there is a repository.
func prepareFolder(ctx context.Context, cfg Backup) error {
	if cfg.Git != "" {
		if _, err := os.Stat(filepath.Join(cfg.Dir, ".git")); errors.Is(err, os.ErrNotExist) {
			_, err = git(ctx, "", "clone", "--", cfg.Git, cfg.Dir)
			return err
		}
	}
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("make the folder for backups: %w", err)
	}
	return nil
}

// push commits files of a clone on top of what the repository has, where others may have pushed meanwhile, and pushes them. Files that are not
// named stay as the repository has them.
func push(ctx context.Context, dir string, files []string) error {
	branch, err := git(ctx, dir, "symbolic-ref", "--short", "HEAD")
	if err != nil {
		return err
	}
	if _, err = git(ctx, dir, "fetch", "origin"); err != nil {
		return err
	}
	theirs := "refs/remotes/origin/" + branch
	if _, err = git(ctx, dir, "rev-parse", "--quiet", "--verify", theirs); err == nil { // not before the first push
		if _, err = git(ctx, dir, "reset", "--mixed", "--quiet", theirs); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		append([]string{"add", "--"}, files...),
		{"-c", "user.name=causeway", "-c", "user.email=causeway@localhost", "commit", "--allow-empty", "--message", "assignment"},
		{"push", "origin", "HEAD"},
	} {
		if _, err = git(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// git runs one command in a folder, "" for the process's, and gives what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // fixed words, and the configured repository and folder
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return string(bytes.TrimSpace(out)), nil
}
