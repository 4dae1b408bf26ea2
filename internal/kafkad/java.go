package kafkad

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

//go:embed log4j.properties
var log4j []byte

// JDK returns the path of a program of the Java installation, such as java or javac: of home (JAVA_HOME) if it is there, else of the search
// path.
func JDK(home, program string) (string, error) {
	if home != "" {
		path := filepath.Join(home, "bin", program)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(program)
}

// Install is what servers are run from.
type Install struct {
	Java     string   // the program
	Libs     string   // the folder of the jars
	LogLevel string   // of the servers; WARN if empty
	Brief    bool     // servers that live briefly: compiled with less effort, they start with a third less CPU and serve heavy loads slower
	Flags    []string // more of the JVM's options
}

// Command is the command line of a Java server whose logs go into dir. heap is its maximum heap as -Xmx takes it, main its class.
func (i Install) Command(dir, heap, main string, args ...string) ([]string, error) {
	conf := filepath.Join(dir, "log4j.properties")
	if err := os.WriteFile(conf, log4j, 0o600); err != nil {
		return nil, fmt.Errorf("write log configuration: %w", err)
	}
	level := i.LogLevel
	if level == "" {
		level = "WARN"
	}
	// The serial collector and a small initial heap keep several servers on two cores and little memory bearable.
	options := []string{i.Java, "-Xmx" + heap, "-Xms64m", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData"}
	if i.Brief {
		options = append(options, "-XX:TieredStopAtLevel=1")
	}
	return slices.Concat(options, i.Flags, []string{
		"-Dlog4j.configuration=file:" + conf, "-Dcauseway.log.level=" + level, "-Dcauseway.log.file=" + filepath.Join(dir, "server.log"),
		"-cp", filepath.Join(i.Libs, "*"), main,
	}, args), nil
}

// Broker is the command line of a broker.
func (i Install) Broker(dir, heap, properties string) ([]string, error) {
	return i.Command(dir, heap, "kafka.Kafka", properties)
}

// Format prepares the folders that a KRaft node's properties name, for a cluster with that id: 16 bytes in URL-safe base64 without padding.
func (i Install) Format(ctx context.Context, dir, properties, clusterID string) error {
	args, err := i.Command(dir, "128m", "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", properties)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // our own argument list
	cmd.SysProcAttr = sysProcAttr()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format storage in %s: %w\n%s", dir, err, out)
	}
	return nil
}

// Render writes a properties file, sorted for its readers.
func Render(conf map[string]string) []byte {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s=%s\n", k, conf[k])
	}
	return b.Bytes()
}
