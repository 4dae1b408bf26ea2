package peers

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	// Helix06 is the release that uReplicator runs.
	Helix06 = "0.6.8"
	// Helix14 stands for the releases since 1.0: other session ids, other order of hand-over, other clean-up.
	Helix14 = "1.4.3"
)

//go:embed pom.xml
var pom []byte

//go:embed java
var sources embed.FS

// Libs returns the folder with the jars of a Helix release and fetches them from Maven Central if it is not there yet:
// helix-libs-VERSION beside the jars of Kafka, see kafkatest.Cached.
func Libs(version string) (string, error) {
	return kafkatest.Cached("helix-libs-"+version, func(dir string) error {
		return kafkatest.FetchJars(dir, pom, "-Dhelix="+version)
	})
}

// Require skips a test that needs real Helix where there can be none, or fails it if CAUSEWAY_REQUIRE_KAFKA=1 says that there must be.
// It also skips in -short mode. Start and Shared call it themselves.
func Require(t testing.TB) {
	t.Helper()
	kafkatest.Require(t) // the ZooKeeper server is of Kafka's jars
	for _, version := range []string{Helix06, Helix14} {
		err := kafkatest.MissingJars("helix-libs-" + version)
		if err == nil {
			_, err = classes(version)
		}
		if err == nil {
			continue
		}
		if os.Getenv("CAUSEWAY_REQUIRE_KAFKA") == "1" {
			t.Fatalf("real Helix is required (CAUSEWAY_REQUIRE_KAFKA=1): %v", err)
		}
		fmt.Fprintf(os.Stderr, "!!! SKIPPING %s, WHICH NEEDS REAL HELIX: %v\n", t.Name(), err)
		t.Skipf("no real Helix: %v", err)
	}
}

// classes returns the folder with the Java program compiled against a release. Its name tells the sources' content.
func classes(version string) (string, error) {
	sum := sha256.New()
	if err := eachSource(func(_ string, text []byte) error {
		_, err := sum.Write(text)
		return err
	}); err != nil {
		return "", err
	}
	name := fmt.Sprintf("helix-peer-%s-%s", version, hex.EncodeToString(sum.Sum(nil)[:6]))
	return kafkatest.Cached(name, func(dir string) error { return compile(version, dir) })
}

// compile writes the sources to dir and the classes beside them, where the logging libraries find their settings, too.
func compile(version, dir string) error {
	libs, err := Libs(version)
	if err != nil {
		return err
	}
	javac, err := kafkatest.JDK("javac")
	if err != nil {
		return fmt.Errorf("find javac: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create folder of classes: %w", err)
	}
	args := []string{"-nowarn", "-proc:none", "-cp", filepath.Join(libs, "*"), "-d", dir}
	if err := eachSource(func(name string, text []byte) error {
		file := filepath.Join(dir, name)
		if filepath.Ext(name) == ".java" {
			args = append(args, file)
		}
		return os.WriteFile(file, text, 0o600)
	}); err != nil {
		return err
	}
	if out, err := exec.Command(javac, args...).CombinedOutput(); err != nil { // our own argument list
		return fmt.Errorf("compile peer against helix %s: %w\n%s", version, err, out)
	}
	return nil
}

// eachSource calls do with the name and text of every file of the Java program.
func eachSource(do func(name string, text []byte) error) error {
	return fs.WalkDir(sources, "java", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return do(d.Name(), text)
	})
}
