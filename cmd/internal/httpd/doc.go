// Package httpd owns what the programs have in common when they serve the API: the server's configuration from the native file, and the address
// under which others reach it.
//
// It has no goroutines. It must not import what moves data or coordinates: the controller uses it as the worker does.
package httpd
