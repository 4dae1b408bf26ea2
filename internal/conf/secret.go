package conf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret bounds what is read of a file that was named by mistake.
const maxSecret = 64 << 10

// Secret reads a secret from the file that a *_file setting names, without the line end that editors add. Read it anew for each use, such
// as each new connection: then a rotated secret takes effect by itself. Errors name the file, never its content.
func Secret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case len(text) > maxSecret:
		return "", fmt.Errorf("read secret %s: more than %d bytes", path, maxSecret)
	case secret == "":
		return "", fmt.Errorf("read secret %s: the file is empty", path)
	}
	return secret, nil
}

// SecretOr gives the value that stands in the configuration or, if there is none, what is in the file. Both are a fault; neither gives "".
func SecretOr(value, path string) (string, error) {
	switch {
	case value != "" && path != "":
		return "", fmt.Errorf("read secret %s: the configuration holds a value as well", path)
	case path != "":
		return Secret(path)
	}
	return value, nil
}
