package kafkatest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

//go:embed mirrormaker.xml
var mirrorMakerPom []byte

// MirrorMakerLibs returns the folder with the jars of a release's MirrorMaker 2 and fetches them from Maven Central if it is not there yet (see
// Cached).
func MirrorMakerLibs(version string) (string, error) {
	return Cached(mirrorMakerName(version), func(dir string) error { return FetchJars(dir, mirrorMakerPom, "-Dkafka="+version) })
}

func mirrorMakerName(version string) string { return "kafka-mirror-" + version }

// RequireMirrorMaker is Require for tests that run a release's MirrorMaker 2 as well.
func RequireMirrorMaker(t testing.TB, version string) {
	t.Helper()
	Require(t)
	err := MissingJars(mirrorMakerName(version))
	if err == nil {
		_, err = MirrorMakerLibs(version)
	}
	if err != nil && os.Getenv("CAUSEWAY_REQUIRE_KAFKA") == "1" {
		t.Fatalf("MirrorMaker 2 is required (CAUSEWAY_REQUIRE_KAFKA=1): %v", err)
	}
	if err != nil {
		t.Skipf("no MirrorMaker 2: %v", err)
	}
}

// MirrorMaker prepares MirrorMaker 2 of a release in its dedicated mode, one node, as that release starts it but for a small heap. It is configured by
// properties and logs from INFO on; flags are further ones of its JVM. Both its folder, which must exist, and its positions, which stand on its
// target, outlast it.
func MirrorMaker(version, dir string, properties map[string]string, flags ...string) (*Program, error) {
	java, err := JDK("java")
	if err != nil {
		return nil, fmt.Errorf("find java: %w", err)
	}
	libs, err := MirrorMakerLibs(version)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "mm2.properties")
	if err := os.WriteFile(file, kafkad.Render(properties), 0o600); err != nil {
		return nil, fmt.Errorf("write properties: %w", err)
	}
	in := kafkad.Install{Java: java, Libs: libs, LogLevel: "INFO", Brief: true, Flags: flags}
	args, err := in.Command(dir, "512m", "org.apache.kafka.connect.mirror.MirrorMaker", file)
	if err != nil {
		return nil, err
	}
	return NewProgram("mm2", dir, args...), nil
}

// Positions reads the topic in which MirrorMaker 2 keeps its positions: the source offset of the last record that it says is copied, by topic and
// partition.
func Positions(t testing.TB, bootstrap []string, topic string) map[string]map[int32]int64 {
	t.Helper()
	found := map[string]map[int32]int64{}
	for _, partition := range Records(t, bootstrap, topic) {
		for _, r := range partition {
			var key []json.RawMessage // the connector's name, what of the source
			var of struct {
				Topic     string `json:"topic"`
				Partition int32  `json:"partition"`
			}
			var at struct {
				Offset int64 `json:"offset"`
			}
			err := errors.Join(json.Unmarshal(r.Key, &key), json.Unmarshal(r.Value, &at))
			if err == nil && len(key) == 2 {
				err = json.Unmarshal(key[1], &of)
			}
			if err != nil {
				t.Fatalf("read position %q %q: %v", r.Key, r.Value, err)
			}
			if found[of.Topic] == nil {
				found[of.Topic] = map[int32]int64{}
			}
			found[of.Topic][of.Partition] = at.Offset
		}
	}
	return found
}
