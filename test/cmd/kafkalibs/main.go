// Command kafkalibs fetches the jars of the Kafka and Helix releases that tests run, and prints the folders they are in.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/causeway-mirror/causeway/test/helix/peers"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kafkalibs:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	for _, jars := range []struct {
		libs    func(version string) (dir string, err error)
		version string
	}{
		{kafkatest.Libs, kafkatest.Kafka3},
		{kafkatest.Libs, kafkatest.Kafka4},
		{peers.Libs, peers.Helix06},
		{peers.Libs, peers.Helix14},
	} {
		dir, err := jars.libs(jars.version)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, dir); err != nil {
			return err
		}
	}
	return nil
}
