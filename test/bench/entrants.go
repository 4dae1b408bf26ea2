package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// errMissing says that an entrant can't run on this machine.
var errMissing = errors.New("not installed here")

// job is what all entrants of a case have to do.
type job struct {
	from, to   []string // bootstrap addresses
	topic      string   // on the source
	partitions int
	replicas   int // on the target
	codec      string
	records    int64
}

// turn is one entrant's go at a job.
type turn struct {
	job

	name string // begins the target topic's name
	dir  string // the process's folder: state and logs
}

// copied is the target topic, which no other run writes to.
func (r turn) copied() string { return r.name + "." + r.topic }

// entrant is a mirror that is measured. start starts its process, which copies the topic and stays.
type entrant struct {
	name  string
	start func(turn) (*kafkatest.Program, error)
}

// launch starts a program in its folder.
func launch(name, dir string, args ...string) (*kafkatest.Program, error) {
	p := kafkatest.NewProgram(name, dir, args...)
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// floor is the cheapest copy there is; flags are more of its flags.
func (l *lab) floor(name string, flags ...string) entrant {
	return entrant{name: name, start: func(r turn) (*kafkatest.Program, error) {
		args := []string{
			l.program("floor"), "-src", strings.Join(r.from, ","), "-dst", strings.Join(r.to, ","), "-topic", r.topic, "-to", r.copied(),
			"-codec", r.codec, "-linger",
		}
		return launch("floor", r.dir, append(args, flags...)...)
	}}
}

// records copies record by record with franz-go.
func (l *lab) recordCopier() entrant { return l.floor("kgo", "-mode", "kgo") }

// causeway runs `causeway standalone` with its defaults and what file, in the form of its configuration file, changes. TOPIC stands for the
// source topic in it; flags are more of its flags.
func (l *lab) causeway(name, file string, flags ...string) entrant {
	return entrant{name: name, start: func(r turn) (*kafkatest.Program, error) {
		config := filepath.Join(r.dir, "causeway.yaml")
		if err := os.WriteFile(config, []byte(strings.ReplaceAll(file, "TOPIC", r.topic)), 0o600); err != nil {
			return nil, fmt.Errorf("write configuration: %w", err)
		}
		args := []string{
			l.program("causeway"), "standalone", "--source", strings.Join(r.from, ","), "--target", strings.Join(r.to, ","),
			"--source-name", r.name, "--topics", r.topic, "--rename", "{source}.{topic}",
			"--state", filepath.Join(r.dir, "state"), "--listen", "127.0.0.1:0", "--log-level", "warn",
		}
		if file != "" {
			args = append(args, "--config", config)
		}
		return launch("causeway", r.dir, append(args, flags...)...)
	}}
}
