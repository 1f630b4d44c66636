package sqlfence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// transaction is one that is committed whole or not at all, even if the work passes
// over an error.
//
// PostgreSQL sees to that itself: after an error it takes nothing but a rollback. MySQL
// rolls a transaction back as the victim of a deadlock, and takes the next statement as
// if nothing had been: without a transaction, without the fence, and commits it at once.
// So the connection does not commit by itself meanwhile, and a savepoint that is gone
// tells that the transaction is not the one that it was.
type transaction struct {
	*sql.Tx
	conn  *sql.Conn
	guard bool // for MySQL
	ended bool // in good order
}

func (s *Store) begin(ctx context.Context, options *sql.TxOptions) (*transaction, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &transaction{conn: conn, guard: s.dialect == MySQL}
	if t.guard {
		_, err = conn.ExecContext(ctx, `SET autocommit = 0`)
	}
	if err == nil {
		t.Tx, err = conn.BeginTx(ctx, options)
	}
	if err == nil && t.guard {
		_, err = t.ExecContext(ctx, `SAVEPOINT sqlfence`)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// commit is explained already.
func (t *transaction) commit(ctx context.Context) error {
	if t.guard {
		_, err := t.ExecContext(ctx, `RELEASE SAVEPOINT sqlfence`)
		switch {
		case errors.Is(err, sql.ErrTxDone):
			return explainCommit(err)
		case serverErrorOf(err).is(noSavepoint):
			return fmt.Errorf("sqlfence: %w: the transaction that began is gone: an error was passed over after which it was rolled back, or a statement committed it, as CREATE TABLE does: %w", ErrAborted, err)
		case err != nil:
			return explain(err)
		}
	}
	if err := explainCommit(t.Commit()); err != nil {
		return err
	}
	t.ended = true
	if t.guard {
		// The work is done, whatever becomes of the connection.
		if _, err := t.conn.ExecContext(ctx, `SET autocommit = 1`); err != nil {
			t.ended = false
		}
	}
	return nil
}

// close rolls back what was not committed. If that fails the connection is broken,
// and the server rolls back when it notices.
func (t *transaction) close() {
	if t.Tx != nil {
		_ = t.Rollback()
	}
	if t.guard && !t.ended {
		// To switch autocommit on would commit what a rollback has left. Without its
		// connection a transaction is rolled back for sure.
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = t.conn.Close()
}
