package kafkatest

import "github.com/causeway-mirror/causeway/internal/kafkad"

// process is one server, mostly Java's, that may be ended and started again.
type process = kafkad.Process

// Program is any other program that a test runs beside the brokers. Kill, Stop, Pause, Resume and Log are those of a Broker. Its owner
// kills it at the end of the test.
type Program struct{ *process }

// NewProgram prepares a program. It appends its output to out.log in dir, which must exist and is its working folder.
func NewProgram(name, dir string, args ...string) *Program {
	return &Program{&process{Name: name, Dir: dir, Args: args}}
}

// Start starts the program, again after its end, and does not wait for anything.
func (p *Program) Start() error { return p.Launch() }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
