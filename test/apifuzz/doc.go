// Package apifuzz holds the test that has schemathesis (PyPI) make requests of the API's description and send them to live processes: what is valid is
// answered as described, what is not is refused, nothing is a 5xx, and no write is done without the token. There is nothing in it but a test, which
// needs the program that CAUSEWAY_SCHEMATHESIS names: `make api-fuzz` installs it.
package apifuzz
