package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fencedlease/fencedlease/leader"
)

// prefix is before each line that is ours and not the command's.
const prefix = "kubectl fence run: "

// log is what people are told, on standard error.
type log struct {
	to    io.Writer
	quiet bool

	mu   sync.Mutex
	last string // of the troubles: the same one again is no news
}

// say tells what is going on, unless people want quiet.
func (l *log) say(format string, args ...any) {
	if !l.quiet {
		l.fail(format, args...)
	}
}

// fail tells why there is going to be an exit status that is not the command's.
func (l *log) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Nobody is left to be told that standard error is closed.
	_, _ = fmt.Fprintf(l.to, prefix+format+"\n", args...)
}

// trouble tells what delays things, once.
func (l *log) trouble(message string) {
	l.mu.Lock()
	news := message != l.last
	l.last = message
	l.mu.Unlock()
	if news {
		l.say("%s", message)
	}
}

// logger is the log for the election: it is told of every try that fails.
func (l *log) logger() logr.Logger { return logr.New(sink{l}) }

type sink struct{ log *log }

var _ logr.LogSink = sink{}

func (sink) Init(logr.RuntimeInfo) {}

func (sink) Enabled(level int) bool { return level == 0 }

// Info tells what package leader has to say beside what is its everyday work.
func (s sink) Info(_ int, message string, values ...any) {
	if strings.HasPrefix(message, "A term of fenced leadership") {
		return
	}
	s.log.trouble(message + pairs(values))
}

// Error tells of a request that failed. That somebody else was faster is no news,
// and what the end of the term or of the candidacy cuts short is told elsewhere.
func (s sink) Error(err error, message string, _ ...any) {
	if lost := (*leader.LostError)(nil); errors.As(err, &lost) || errors.Is(err, context.Canceled) || apierrors.IsConflict(err) {
		return
	}
	s.log.trouble(fmt.Sprintf("%s: %v", message, err))
}

func (s sink) WithValues(...any) logr.LogSink { return s }

func (s sink) WithName(string) logr.LogSink { return s }

// pairs are values of a log entry, for people.
func pairs(values []any) string {
	var text strings.Builder
	for i := 0; i+1 < len(values); i += 2 {
		fmt.Fprintf(&text, ", %v %v", values[i], values[i+1])
	}
	return text.String()
}

// elector is the log for client-go's elector, which says much that is its everyday
// work: only its errors are told. It goes on trying whatever they are; a right that
// somebody lacks is worth no wait.
type elector struct {
	sink

	forbidden func(error)
}

func (elector) Info(int, string, ...any) {}

func (e elector) Error(err error, message string, values ...any) {
	if apierrors.IsForbidden(err) {
		e.forbidden(err)
		return
	}
	e.sink.Error(err, message, values...)
}

func (e elector) WithValues(...any) logr.LogSink { return e }

func (e elector) WithName(string) logr.LogSink { return e }
