package sqlfence

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// What a server answered is found in the errors of both drivers, and nowhere else.
func TestServerErrorOf(t *testing.T) {
	tests := map[string]struct {
		err  error
		want serverError
	}{
		"none":                     {nil, serverError{}},
		"no answer":                {io.ErrUnexpectedEOF, serverError{}},
		"PostgreSQL":               {&pgconn.PgError{Code: "40001"}, serverError{state: "40001"}},
		"PostgreSQL, wrapped":      {fmt.Errorf("x: %w", &pgconn.PgError{Code: "40P01"}), serverError{state: "40P01"}},
		"MySQL":                    {&mysql.MySQLError{Number: 1213}, serverError{number: 1213}},
		"MySQL, wrapped":           {fmt.Errorf("x: %w", &mysql.MySQLError{Number: 1205}), serverError{number: 1205}},
		"MySQL, wrapped with ours": {fmt.Errorf("%w: %w", ErrRange, &mysql.MySQLError{Number: 1264}), serverError{number: 1264}},
		"MySQL, one of several":    {errors.Join(io.EOF, &mysql.MySQLError{Number: 1213}), serverError{number: 1213}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := serverErrorOf(tc.err); got != tc.want {
				t.Errorf("it is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// Only an answer that says so tells that nothing was committed.
func TestExplainCommit(t *testing.T) {
	tests := map[string]struct {
		err         error
		wantUnknown bool
	}{
		"committed":                     {nil, false},
		"a serialization failure":       {&pgconn.PgError{Code: "40001"}, false},
		"a deadlock":                    {&mysql.MySQLError{Number: 1213}, false},
		"a constraint, deferred":        {&pgconn.PgError{Code: "23503"}, false},
		"a transaction that had failed": {errors.New("commit unexpectedly resulted in rollback"), false},
		"no answer":                     {io.ErrUnexpectedEOF, true},
		"completion unknown":            {&pgconn.PgError{Code: "40003"}, true},
		"the server shuts down":         {&pgconn.PgError{Code: "57P01"}, true},
		"the server was killed":         {&mysql.MySQLError{Number: 1927}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := explainCommit(tc.err)
			if errors.Is(err, ErrCommitUnknown) != tc.wantUnknown || (err == nil) != (tc.err == nil) {
				t.Errorf("it is %v", err)
			}
		})
	}
}
