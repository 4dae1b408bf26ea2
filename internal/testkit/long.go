package testkit

import "os"

// Long says whether tests are to run at full length (CAUSEWAY_LONG=1, as make test-long sets it): longer chaos, more seeds, more
// deaths. Without it, a test tries the same things fewer times; it never skips what it is named for.
func Long() bool { return os.Getenv("CAUSEWAY_LONG") == "1" }
