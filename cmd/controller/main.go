package main

import "github.com/causeway-mirror/causeway/cmd/internal/program"

func main() { program.Main(run) }
