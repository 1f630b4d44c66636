package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/fencedlease/fencedlease/fence"
)

// Order is which tokens a row admits, as the WHERE of the UPDATE has it. It is
// spec.tokenOrder of a FencedLease.
type Order int

const (
	// NotOlder admits the mark itself and larger tokens (fencing_token <= token): a
	// term may write a row often.
	NotOlder Order = iota

	// StrictlyNewer admits only larger tokens (fencing_token < token): one write of a
	// row per term.
	StrictlyNewer
)

// Table says how rows of a table are fenced. Its fields are put into statements as
// they stand: they are for the program's author, never for what comes from outside.
type Table struct {
	// Name is the table's, as SQL has it.
	Name string

	// Key is the condition that selects one row, with the placeholders of the database
	// for the arguments of [Table.Row]: id = $1 for PostgreSQL, id = ? for MySQL.
	Key string

	// Column holds the mark: a BIGINT NOT NULL DEFAULT 0. By default, fencing_token.
	Column string

	// Order must be that of the statements. By default, [NotOlder].
	Order Order
}

// Row is one row of a fenced table.
type Row struct {
	table Table
	key   []any
}

// Row is the row with that key: the arguments of [Table.Key].
func (t Table) Row(key ...any) Row { return Row{table: t, key: key} }

// String is the row for people.
func (r Row) String() string {
	key := make([]string, len(r.key))
	for i, value := range r.key {
		key[i] = fmt.Sprint(value)
	}
	return fmt.Sprintf("%s(%s)", r.table.Name, strings.Join(key, ", "))
}

// Update runs an UPDATE of one row that compares its mark with the token and stores the
// token in it:
//
//	UPDATE account SET balance = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2
//
// (< for [StrictlyNewer]). The row says which row that is, and the arguments are those
// of the statement, the token among them. It must not have a RETURNING of its own.
//
// If it updates no row the error says why: [*StaleError], [ErrNotFound],
// [ErrNullToken], or [ErrNotUpdated]. It is [ErrStatement] where the statement updated
// several rows, or stored anything but the token; that the statement compares at all, its
// author must see to. After any error roll the transaction back.
func (s *Store) Update(ctx context.Context, tx *sql.Tx, row Row, token fence.Token, update string, args ...any) error {
	if err := validToken(token); err != nil {
		return err
	}
	updated, stored, err := s.update(ctx, tx, row, update, args)
	switch {
	case err != nil:
		return explain(err)
	case updated == 0:
		return s.whyNot(ctx, tx, row, token)
	case updated > 1:
		return fmt.Errorf("sqlfence: %w: it updated %d rows for %s", ErrStatement, updated, row)
	case !stored.Valid:
		return fmt.Errorf("sqlfence: %w: it left NULL in %s as the mark of %s, not %s", ErrStatement, row.column(), row, token)
	case stored.Int64 != int64(token):
		return fmt.Errorf("sqlfence: %w: it left %d in %s as the mark of %s, not %s", ErrStatement, stored.Int64, row.column(), row, token)
	}
	return nil
}

// update runs the statement, and returns how many rows it updated, and the mark that
// it has left in one of them.
func (s *Store) update(ctx context.Context, tx *sql.Tx, row Row, update string, args []any) (updated int64, stored sql.NullInt64, err error) {
	if read := s.dialect.statements().stored; read != "" {
		result, err := tx.ExecContext(ctx, update, args...)
		if err != nil {
			return 0, stored, err
		}
		if updated, err = result.RowsAffected(); err != nil || updated != 1 {
			return updated, stored, err
		}
		err = tx.QueryRowContext(ctx, row.query(read), row.key...).Scan(&stored)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, stored, fmt.Errorf("sqlfence: %w: it updated another row than %s", ErrStatement, row)
		}
		return updated, stored, err
	}
	// On a line of its own, should the statement end with a comment.
	returning := strings.Join([]string{strings.TrimRight(update, "; \t\r\n"), "RETURNING", row.column()}, "\n")
	rows, err := tx.QueryContext(ctx, returning, args...)
	if err != nil {
		return 0, stored, err
	}
	defer func() { _ = rows.Close() }()
	for ; rows.Next(); updated++ {
		if err := rows.Scan(&stored); err != nil {
			return updated, stored, err
		}
	}
	return updated, stored, rows.Err()
}

// whyNot says why a row was not updated.
func (s *Store) whyNot(ctx context.Context, tx *sql.Tx, row Row, token fence.Token) error {
	var mark sql.NullInt64
	err := tx.QueryRowContext(ctx, row.query(s.dialect.statements().reread), row.key...).Scan(&mark)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("sqlfence: %s: %w", row, ErrNotFound)
	case err != nil:
		return fmt.Errorf("sqlfence: the mark of %s cannot be read: %w", row, explain(err))
	case !mark.Valid:
		return fmt.Errorf("sqlfence: %s: %w", row, ErrNullToken)
	case mark.Int64 > int64(token), mark.Int64 == int64(token) && row.table.Order == StrictlyNewer:
		return refusal(row.String(), token, mark.Int64)
	}
	return fmt.Errorf("sqlfence: %s with mark %d: %w", row, mark.Int64, ErrNotUpdated)
}

func (r Row) column() string {
	if r.table.Column == "" {
		return "fencing_token"
	}
	return r.table.Column
}

// query puts the table's names into a statement.
func (r Row) query(statement string) string {
	return strings.NewReplacer("{column}", r.column(), "{table}", r.table.Name, "{key}", r.table.Key).Replace(statement)
}
