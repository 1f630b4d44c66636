package sqlfence

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fencedlease/fencedlease/fence"
)

// maxResource is the longest name of a resource, in bytes: that of the table's key.
const maxResource = 255

// Fence puts a transaction under the fence of a resource, by the name that its users
// have agreed on: 1 to 255 bytes of UTF-8 without NUL. It raises the mark of the resource
// to the token, or returns a [*StaleError] if the mark is larger.
//
// Call it before anything else in the transaction: what was read before may be older
// than the mark. Until the transaction ends no other one gets past Fence for the same
// resource, so transactions on a resource run one after the other; and if this one is
// committed, no smaller token ever gets past it again. A token that equals the mark is
// admitted: one term may write often.
//
// At REPEATABLE READ and above PostgreSQL may answer with a serialization failure where
// two transactions raise the mark at once; and either database finds a deadlock where
// transactions hold several resources in different orders. Run the transaction again:
// [Runner] does.
func (s *Store) Fence(ctx context.Context, tx *sql.Tx, resource string, token fence.Token) error {
	if err := validToken(token); err != nil {
		return err
	}
	if err := validResource(resource); err != nil {
		return err
	}
	sqls := s.dialect.statements()
	result, err := tx.ExecContext(ctx, sqls.raise, sqls.raiseArgs(resource, int64(token))...)
	if err != nil {
		return explain(err)
	}
	// MySQL counts 1, 2 or 0 rows, which does not tell enough.
	if s.dialect == PostgreSQL {
		if raised, err := result.RowsAffected(); err != nil || raised == 1 {
			return err
		}
	}
	var mark int64
	if err := tx.QueryRowContext(ctx, sqls.mark, resource).Scan(&mark); err != nil {
		return fmt.Errorf("sqlfence: the mark of %q cannot be read: %w", resource, explain(err))
	}
	if s.dialect == MySQL && mark == int64(token) {
		return nil
	}
	return refusal(fmt.Sprintf("%q", resource), token, mark)
}

func validResource(resource string) error {
	if resource == "" || len(resource) > maxResource || !utf8.ValidString(resource) || strings.ContainsRune(resource, 0) {
		return fmt.Errorf("sqlfence: %.64q, of %d bytes: %w", resource, len(resource), ErrResource)
	}
	return nil
}
