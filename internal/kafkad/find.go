package kafkad

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// oldest is the first release whose brokers can do without ZooKeeper in earnest (KIP-833).
const oldest = "3.3"

// Cache is the folder in which fetched jars are kept: override if it is given, else causeway below the user's cache folder.
func Cache(override string) (string, error) {
	if override != "" {
		return filepath.Abs(override)
	}
	cache, err := os.UserCacheDir()
	if err != nil { // no home folder, as in some containers
		cache = os.TempDir()
	}
	return filepath.Join(cache, "causeway"), nil
}

// Installed returns the jars of a local installation of Kafka, and its release.
func Installed(home string) (libs, release string, err error) {
	libs = filepath.Join(home, "libs")
	switch release = releaseOf(libs); {
	case release == "":
		return "", "", fmt.Errorf("there is no %s", filepath.Join(libs, "kafka-clients-VERSION.jar"))
	case compare(release, oldest) < 0:
		return "", "", fmt.Errorf("it is Kafka %s, and only %s and later run without ZooKeeper", release, oldest)
	}
	return libs, release, nil
}

// Fetched returns the jars of the newest release that was fetched into a cache folder.
func Fetched(cache string) (libs, release string, err error) {
	folders, err := filepath.Glob(filepath.Join(cache, "kafka-libs-*"))
	if err != nil {
		return "", "", fmt.Errorf("look for jars in %s: %w", cache, err)
	}
	for _, dir := range folders {
		if found := releaseOf(dir); compare(found, oldest) >= 0 && compare(found, release) > 0 {
			libs, release = dir, found
		}
	}
	if libs == "" {
		return "", "", fmt.Errorf("there are no jars of Kafka in %s", cache)
	}
	return libs, release, nil
}

// releaseOf reads the release from the name of the clients' jar; empty if there is none.
func releaseOf(libs string) string {
	jars, err := filepath.Glob(filepath.Join(libs, "kafka-clients-*.jar"))
	if err != nil {
		return ""
	}
	named := regexp.MustCompile(`^kafka-clients-([0-9]+(\.[0-9]+)+)`)
	for _, jar := range jars {
		if m := named.FindStringSubmatch(filepath.Base(jar)); m != nil {
			return m[1]
		}
	}
	return ""
}

// compare orders releases by their numbers; none comes first.
func compare(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

func numbers(release string) (all []int) {
	for _, digits := range regexp.MustCompile(`[0-9]+`).FindAllString(release, -1) {
		n, err := strconv.Atoi(digits)
		if errors.Is(err, strconv.ErrRange) {
			return nil
		}
		all = append(all, n)
	}
	return all
}
