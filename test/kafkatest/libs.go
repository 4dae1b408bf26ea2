package kafkatest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

const (
	// Kafka3 is the release tested with ZooKeeper, the last line that has it.
	Kafka3 = "3.9.2"
	// Kafka4 is the release tested with KRaft.
	Kafka4 = "4.3.1"
)

//go:embed pom.xml
var pom []byte

// Libs returns the folder with the jars of a Kafka release and fetches them from Maven Central if it is not there yet (see Cached).
func Libs(version string) (string, error) {
	return Cached("kafka-libs-"+version, func(dir string) error { return FetchJars(dir, pom, "-Dkafka="+version) })
}

// Cached returns the folder NAME below CAUSEWAY_KAFKA_HOME, or else below causeway in the user's cache folder, which is kept from run to
// run. If it is not there yet, fill makes it from nothing. Several processes may call it at once; one fills, the others wait. The folder
// appears under its name only when it is complete, so that a broken download is never used.
func Cached(name string, fill func(dir string) error) (string, error) {
	home, err := libsHome()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, name)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(home, 0o750); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("open lock of %s: %w", name, err)
	}
	defer lock.Close() // closing gives the lock up; nothing was written
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", name, err)
	}
	if exists(dir) { // another process filled it while this one waited
		return dir, nil
	}
	tmp, err := os.MkdirTemp(home, "fetch-")
	if err != nil {
		return "", fmt.Errorf("create folder for %s: %w", name, err)
	}
	defer os.RemoveAll(tmp) // best effort
	made := filepath.Join(tmp, "made")
	if err := fill(made); err != nil {
		return "", err
	}
	if err := os.Rename(made, dir); err != nil {
		return "", fmt.Errorf("move %s into place: %w", name, err)
	}
	return dir, nil
}

// FetchJars makes dir and puts there, through Maven, the jars that a project depends on: model is its POM, properties are arguments like
// -Dname=value that it needs.
func FetchJars(dir string, model []byte, properties ...string) error {
	file := dir + ".pom.xml"
	if err := os.WriteFile(file, model, 0o600); err != nil {
		return fmt.Errorf("write pom: %w", err)
	}
	args := append([]string{"-q", "-B", "-f", file, "dependency:copy-dependencies", "-DoutputDirectory=" + dir}, properties...)
	if out, err := exec.Command("mvn", args...).CombinedOutput(); err != nil { // Maven has its own time-outs
		return fmt.Errorf("fetch jars with maven %v: %w\n%s", properties, err, out)
	}
	return nil
}

func libsHome() (string, error) { return kafkad.Cache(os.Getenv("CAUSEWAY_KAFKA_HOME")) }

// JDK returns the path of a program of the Java installation, such as java or javac: of JAVA_HOME if set, else of the search path.
func JDK(program string) (string, error) { return kafkad.JDK(os.Getenv("JAVA_HOME"), program) }

// install is what servers of a Kafka release are run from. CAUSEWAY_KAFKA_LOG sets their log level.
func install(version, role string, known classes) (kafkad.Install, error) {
	java, err := JDK("java")
	if err != nil {
		return kafkad.Install{}, fmt.Errorf("find java: %w", err)
	}
	libs, err := Libs(version)
	return kafkad.Install{
		Java: java, Libs: libs, LogLevel: os.Getenv("CAUSEWAY_KAFKA_LOG"), Brief: testing.Testing() && !testkit.Long(), Flags: known.flags(role),
	}, err
}

// Missing says why real brokers of a release can't be run on this machine; nil if they can.
func Missing(version string) error { return MissingJars("kafka-libs-" + version) }

// MissingJars says why Java programs with the jars of that cached folder can't be run on this machine; nil if they can.
func MissingJars(name string) error {
	if _, err := JDK("java"); err != nil {
		return errors.New("java is not installed")
	}
	home, err := libsHome()
	if err != nil {
		return err
	}
	if exists(filepath.Join(home, name)) {
		return nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return fmt.Errorf("%s is not in %s and mvn, which fetches it, is not installed", name, home)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
