// Package ui holds the tests of the page below /ui/ in a real browser: Chromium, driven by playwright-core from Node. The page is looked at
// beside a live mirror (causeway demo), and beside the API's own server with a cluster that a test makes up: workers, trouble, a token, thousands
// of topics. There is nothing in it but tests.
//
// Where Chromium, Node or what npm installs is missing the tests are skipped with a loud line, unless CAUSEWAY_REQUIRE_BROWSER=1 makes that a
// failure. CAUSEWAY_PICTURES=FOLDER has the pictures of docs/web.md taken, too.
package ui
