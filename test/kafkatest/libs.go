package kafkatest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const (
	// Kafka3 is the release tested with ZooKeeper, the last line that has it.
	Kafka3 = "3.9.2"
	// Kafka4 is the release tested with KRaft.
	Kafka4 = "4.3.1"
)

//go:embed pom.xml
var pom []byte

// Libs returns the folder with the jars of a Kafka release and fetches them from Maven Central if it is not there yet:
// kafka-libs-VERSION below CAUSEWAY_KAFKA_HOME, or else below causeway in the user's cache folder. Several processes may call
// it at once; one fetches, the others wait.
func Libs(version string) (string, error) {
	home, err := libsHome()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, "kafka-libs-"+version)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(home, 0o750); err != nil {
		return "", fmt.Errorf("create folder for kafka jars: %w", err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("open lock of kafka jars: %w", err)
	}
	defer lock.Close() // closing gives the lock up; nothing was written
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock kafka jars: %w", err)
	}
	if exists(dir) { // another process fetched while this one waited
		return dir, nil
	}
	return dir, fetch(version, dir)
}

// fetch fills dir through Maven. The folder appears under its name only when it is complete, so that a broken download is never used.
func fetch(version, dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return fmt.Errorf("create folder for kafka jars: %w", err)
	}
	defer os.RemoveAll(tmp) // best effort
	file := filepath.Join(tmp, "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return fmt.Errorf("write pom: %w", err)
	}
	jars := filepath.Join(tmp, "jars")
	cmd := exec.Command("mvn", "-q", "-B", "-f", file, "-Dkafka="+version, "dependency:copy-dependencies", "-DoutputDirectory="+jars) // fixed program; Maven has its own time-outs
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch kafka %s with maven: %w\n%s", version, err, out)
	}
	if err := os.Rename(jars, dir); err != nil {
		return fmt.Errorf("move kafka jars into place: %w", err)
	}
	return nil
}

func libsHome() (string, error) {
	if home := os.Getenv("CAUSEWAY_KAFKA_HOME"); home != "" {
		return filepath.Abs(home)
	}
	cache, err := os.UserCacheDir()
	if err != nil { // no home folder, as in some containers
		cache = os.TempDir()
	}
	return filepath.Join(cache, "causeway"), nil
}

// java returns the path of the Java program: of JAVA_HOME if set, else of the search path.
func java() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path := filepath.Join(home, "bin", "java"); exists(path) {
			return path, nil
		}
	}
	return exec.LookPath("java")
}

// Missing says why real brokers of a release can't be run on this machine; nil if they can.
func Missing(version string) error {
	if _, err := java(); err != nil {
		return errors.New("java is not installed")
	}
	home, err := libsHome()
	if err != nil {
		return err
	}
	if exists(filepath.Join(home, "kafka-libs-"+version)) {
		return nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return fmt.Errorf("the jars of kafka %s are not in %s and mvn, which fetches them, is not installed", version, home)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
