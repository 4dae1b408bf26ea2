package main

import (
	"os"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
)

func main() { os.Exit(program.Main(run)) }
