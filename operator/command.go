package operator

import (
	"errors"
	"strconv"
	"strings"
)

// Command is what shall be done once to a partition, by whoever runs it.
type Command struct {
	// To is where the position is to be set; nil: the partition is only tried again, as after a reset, too.
	To *Place
	// From is the epoch in which the first try found the partition; nil before it. A partition that is in another epoch was reset by that try.
	From *Epoch
}

// String is for people.
func (c Command) String() string {
	if c.To == nil {
		return commandRetry
	}
	return commandReset + " to " + c.To.String()
}

// Epoch is one reign of a producer id over a partition: within it positions only grow.
type Epoch struct {
	ProducerID int64
	Epoch      int16
}

// String is for people and records: id/epoch.
func (e Epoch) String() string {
	return strconv.FormatInt(e.ProducerID, 10) + "/" + strconv.Itoa(int(e.Epoch))
}

func parseEpoch(text string) (Epoch, error) {
	id, epoch, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(id, 10, 64)
	m, err2 := strconv.ParseInt(epoch, 10, 16)
	if err = errors.Join(err, err2); err != nil {
		return Epoch{}, &InvalidError{Key: fieldFrom, Value: text, Reason: "must be a producer id and an epoch, such as 4001/0"}
	}
	return Epoch{ProducerID: n, Epoch: int16(m)}, nil
}

// Fields of a command's record.
const (
	fieldCommand = "command"
	fieldTo      = "to"
	fieldFrom    = "from"

	commandReset = "reset"
	commandRetry = "retry"
)

// Write puts the command into a record's simple fields, in place of another.
func (c Command) Write(simple map[string]string) {
	delete(simple, fieldTo)
	delete(simple, fieldFrom)
	simple[fieldCommand] = commandRetry
	if c.To != nil {
		simple[fieldCommand], simple[fieldTo] = commandReset, c.To.String()
	}
	if c.From != nil {
		simple[fieldFrom] = c.From.String()
	}
}

// ReadCommand reads what Write wrote.
func ReadCommand(simple map[string]string) (Command, error) {
	var c Command
	switch text := simple[fieldCommand]; text {
	case commandRetry:
		return c, nil
	case commandReset:
	default:
		return c, &InvalidError{Key: fieldCommand, Value: text, Reason: "must be reset or retry"}
	}
	to, err := ParsePlace(simple[fieldTo])
	if err != nil {
		return c, err
	}
	c.To = &to
	if text, ok := simple[fieldFrom]; ok {
		from, err := parseEpoch(text)
		if err != nil {
			return c, err
		}
		c.From = &from
	}
	return c, nil
}
