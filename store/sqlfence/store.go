package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Store is a database whose writes are fenced. It is safe for concurrent use.
type Store struct {
	db      *sql.DB
	dialect Dialect
}

// Open looks whether a database is fit for fencing, with a write that changes nothing.
// The error is [ErrSetup] where
//
//   - the table fencing_marks is not there: see [Migrate];
//   - the connection is to MySQL and counts changed rows in place of found ones, so that a
//     write of equal values would look stale: the DSN needs clientFoundRows=true;
//   - the connection is to MySQL and not strict, so that a token too large for its
//     column would be cut: sql_mode must have STRICT_TRANS_TABLES or STRICT_ALL_TABLES,
//     which is the default.
//
// It is [ErrReadOnly] on a replica.
func Open(ctx context.Context, db *sql.DB, dialect Dialect) (*Store, error) {
	if err := dialect.validate(); err != nil {
		return nil, err
	}
	s := &Store{db: db, dialect: dialect}
	result, err := db.ExecContext(ctx, dialect.statements().probe)
	if serverErrorOf(err).is(noTable) {
		return nil, fmt.Errorf("sqlfence: %w: there is no table fencing_marks: run Migrate: %w", ErrSetup, err)
	}
	if err != nil {
		return nil, explain(err)
	}
	found, err := result.RowsAffected()
	if err != nil {
		return nil, err
	}
	if found == 0 {
		return nil, s.notFound(ctx)
	}
	if dialect == MySQL {
		if err := s.strict(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// notFound says why the row without a name was not updated.
func (s *Store) notFound(ctx context.Context) error {
	var mark int64
	err := s.db.QueryRowContext(ctx, `SELECT token FROM fencing_marks WHERE resource = ''`).Scan(&mark)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("sqlfence: %w: the table fencing_marks lacks its row without a name: run Migrate", ErrSetup)
	case err != nil:
		return explain(err)
	}
	return fmt.Errorf("sqlfence: %w: this connection counts changed rows, not found ones, so a repeated write would look stale: set clientFoundRows=true in the DSN", ErrSetup)
}

// strict says whether the server refuses what does not fit.
func (s *Store) strict(ctx context.Context) error {
	var mode string
	if err := s.db.QueryRowContext(ctx, `SELECT @@SESSION.sql_mode`).Scan(&mode); err != nil {
		return explain(err)
	}
	if !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		return fmt.Errorf("sqlfence: %w: sql_mode is %q, so a token too large for its column would be cut: add STRICT_TRANS_TABLES", ErrSetup, mode)
	}
	return nil
}
