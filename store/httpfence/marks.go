package httpfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/store/sqlfence"
)

// Marks keeps the marks of a service's resources.
type Marks interface {
	// Hold raises the mark of a resource to the token, and calls work. It returns a
	// [*StaleError], and calls nothing, if the mark is larger. Until work has returned no
	// other call gets past the mark of the same resource.
	//
	// If work returns an error, the mark may fall back to what it was, and Hold returns
	// that error as it is. Any other error says that nothing was done, unless it is
	// [ErrUnknown]; [ErrResource] says that the name cannot be one.
	Hold(ctx context.Context, resource string, token fence.Token, work func(context.Context) error) error
}

// ErrUnknown says that it is not known whether work that has succeeded was stored.
var ErrUnknown = errors.New("it is not known whether the work was stored")

// ErrResource says that a resource cannot have that name.
var ErrResource = errors.New("a resource cannot have that name")

// StaleError says that a token is smaller than the mark.
type StaleError struct {
	Resource    string
	Token, Mark fence.Token
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("token %s is stale: %q has been worked on with token %s", e.Token, e.Resource, e.Mark)
}

// Memory keeps marks in this process. They are lost when it ends, and then any token is
// admitted again until a newer one comes: it is for a service whose data are lost with
// them, and that runs once. It keeps every name that it ever got. The zero value is ready. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	marks map[string]*memoryMark
}

// memoryMark is a mark, and whoever holds it.
type memoryMark struct {
	held chan struct{} // full while it is held
	mark fence.Token
}

// Hold implements [Marks].
func (m *Memory) Hold(ctx context.Context, resource string, token fence.Token, work func(context.Context) error) error {
	mark := m.of(resource)
	select {
	case mark.held <- struct{}{}:
		defer func() { <-mark.held }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if token < mark.mark {
		return &StaleError{Resource: resource, Token: token, Mark: mark.mark}
	}
	mark.mark = token
	return work(ctx)
}

func (m *Memory) of(resource string) *memoryMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := m.marks[resource]
	if mark == nil {
		if m.marks == nil {
			m.marks = map[string]*memoryMark{}
		}
		mark = &memoryMark{held: make(chan struct{}, 1)}
		m.marks[resource] = mark
	}
	return mark
}

// SQL keeps marks in a database, in the table fencing_marks of package sqlfence, and holds
// them by a transaction, which [Tx] gives to the work. Resources have names of 1 to 255
// bytes.
type SQL struct {
	// Store is where. Required.
	Store *sqlfence.Store

	// Options are those of the transactions; nil for the database's own.
	Options *sql.TxOptions
}

// Hold implements [Marks]. The work is called once at most: a request cannot be read
// again. A deadlock or a serialization failure is returned.
func (s SQL) Hold(ctx context.Context, resource string, token fence.Token, work func(context.Context) error) error {
	runner := sqlfence.Runner{
		Store: s.Store, Leadership: sqlfence.Fixed(token), Resource: resource, Options: s.Options,
		MaxTerms: 1, MaxRetries: -1,
	}
	var worked error
	err := runner.Run(ctx, func(ctx context.Context, tx *sql.Tx, _ fence.Token) error {
		worked = work(context.WithValue(ctx, txKey{}, tx))
		return worked
	})
	stale := (*sqlfence.StaleError)(nil)
	switch {
	case worked != nil:
		return worked
	case errors.As(err, &stale):
		return &StaleError{Resource: resource, Token: stale.Token, Mark: stale.Mark}
	case errors.Is(err, sqlfence.ErrCommitUnknown):
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case errors.Is(err, sqlfence.ErrResource):
		return fmt.Errorf("%w: %w", ErrResource, err)
	}
	return err
}

// txKey is the key of the transaction in a context.
type txKey struct{}

// Tx is the transaction that holds the mark, for a handler behind a [Guard] whose marks are
// [SQL]; else nil. What the handler does in it is committed together with the mark, and
// only if the handler succeeds. The handler neither commits it nor rolls it back.
func Tx(ctx context.Context) *sql.Tx {
	tx, _ := ctx.Value(txKey{}).(*sql.Tx)
	return tx
}
