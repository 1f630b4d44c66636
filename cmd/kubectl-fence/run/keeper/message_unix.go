//go:build unix

package keeper

import (
	"encoding/json"
	"net"
	"os"
	"syscall"
	"time"
)

// order is what the owner tells the keeper, a line of JSON. The first one has
// Start.
type order struct {
	Start    *start         `json:"start,omitempty"`
	Deadline int64          `json:"deadline,omitempty"` // on the clock of now
	Signal   syscall.Signal `json:"signal,omitempty"`   // for the process group
	Kill     bool           `json:"kill,omitempty"`
}

// start is what the keeper has to know beside its arguments.
type start struct {
	Scratch    string `json:"scratch"`
	Foreground bool   `json:"foreground"`
}

// report is what the keeper tells the owner.
type report struct {
	Started int      `json:"started,omitempty"` // the process group
	Stopped bool     `json:"stopped,omitempty"` // by the terminal
	Over    *Outcome `json:"over,omitempty"`
}

// sendTimeout bounds how long a message waits for a reader that is stopped.
const sendTimeout = time.Second

// line is one end of the socket between the two.
type line struct {
	net.Conn

	encoder *json.Encoder
	decoder *json.Decoder
}

// newLine takes the file descriptor over.
func newLine(fd int) (*line, error) {
	file := os.NewFile(uintptr(fd), "keeper")
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return &line{conn, json.NewEncoder(conn), json.NewDecoder(conn)}, nil
}

// send sends a message. Where that fails the other one is gone, or hangs, and what
// it has got may be half a message: the line is of no use any more, which both ends
// then notice.
func (l *line) send(message any) {
	err := l.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		err = l.encoder.Encode(message)
	}
	if err != nil {
		_ = l.Close()
	}
}
