// Command kafkalibs fetches the jars of the Kafka releases that tests run, and prints the folders they are in.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kafkalibs:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	for _, version := range []string{kafkatest.Kafka3, kafkatest.Kafka4} {
		dir, err := kafkatest.Libs(version)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, dir); err != nil {
			return err
		}
	}
	return nil
}
