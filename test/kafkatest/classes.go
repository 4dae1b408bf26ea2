package kafkatest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// What is run, each with classes of its own.
const (
	brokerRole    = "broker"
	formatRole    = "format"
	zooKeeperRole = "zookeeper"
)

// classes is a folder with the classes of a release's servers as a JVM has them in memory once they are loaded (JEP 350): a server that maps them
// starts with half the CPU time. Where there are none, or another Java's, servers start all the same. The zero value has none.
type classes struct {
	dir    string
	record bool // servers write them when they end by SIGTERM
}

// flags are what a server's JVM is told.
func (c classes) flags(role string) []string {
	file := filepath.Join(c.dir, role+".jsa")
	switch {
	case c.dir == "":
		return nil
	case c.record:
		return []string{"-XX:+IgnoreUnrecognizedVMOptions", "-XX:ArchiveClassesAtExit=" + file} // Java 13 and later
	case !exists(file):
		return nil
	default:
		return []string{"-XX:SharedArchiveFile=" + file}
	}
}

// classesOf returns a release's classes for the Java that is installed. They are made once, by servers that start and end, and kept beside the jars.
func classesOf(ctx context.Context, version string) (classes, error) {
	in, err := install(version, brokerRole, classes{})
	if err != nil {
		return classes{}, err
	}
	java, err := filepath.EvalSymlinks(in.Java)
	if err != nil {
		return classes{}, fmt.Errorf("find java: %w", err)
	}
	file, err := os.Stat(java)
	if err != nil {
		return classes{}, fmt.Errorf("find java: %w", err)
	}
	stamp := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", java, file.Size(), file.ModTime().UnixNano(), in.Libs))
	dir, err := Cached(fmt.Sprintf("kafka-classes-%s-%x", version, stamp[:6]), func(dir string) error {
		if err := os.Mkdir(dir, 0o750); err != nil {
			return fmt.Errorf("create folder of classes: %w", err)
		}
		return record(ctx, version, classes{dir: dir, record: true})
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) { // a cache that others keep
		return classes{}, nil
	}
	return classes{dir: dir}, err
}

// record starts a broker, with its ZooKeeper if the release has one, and ends it so that its classes are written.
func record(ctx context.Context, version string, to classes) error {
	c, err := open(ctx, Options{Version: version}, to)
	if err != nil {
		return fmt.Errorf("start servers whose classes are kept: %w", err)
	}
	for _, b := range c.brokers {
		err = errors.Join(err, b.Stop())
	}
	if c.zk != nil {
		err = errors.Join(err, c.zk.Stop())
	}
	return errors.Join(err, c.Close())
}
