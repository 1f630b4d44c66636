// Package stores tests the fences of other stores (store/sqlfence, store/httpfence)
// against real databases, and the snippets of docs/stores.md.
package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/fencedlease/fencedlease/store/sqlfence"
	"github.com/fencedlease/fencedlease/test/stores/server"
)

// startTimeout bounds the start of all servers.
const startTimeout = 2 * time.Minute

// database is a kind of database, with its server.
type database struct {
	name    string
	dialect sqlfence.Dialect
	driver  string
	dsn     func(address string) string
	start   func(context.Context) (*server.Server, error)
	server  *server.Server

	// isolation are the levels that it offers.
	isolation []sql.IsolationLevel
}

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

var (
	postgresql = &database{
		name: "PostgreSQL", dialect: sqlfence.PostgreSQL, driver: "pgx",
		dsn: server.PostgreSQLDSN, start: server.PostgreSQL,
		isolation: append([]sql.IsolationLevel{sql.LevelReadUncommitted}, levels...),
	}
	mariadb = &database{
		name: "MariaDB", dialect: sqlfence.MySQL, driver: "mysql",
		dsn: server.MariaDBDSN, start: server.MariaDB,
		isolation: append([]sql.IsolationLevel{sql.LevelReadUncommitted}, levels...),
	}
	databases = []*database{postgresql, mariadb}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	// It tells of every connection that is cut; so do the errors.
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	started := make(chan error)
	for _, d := range databases {
		go func() {
			var err error
			d.server, err = d.start(ctx)
			started <- err
		}()
	}
	for range databases {
		err = errors.Join(err, <-started)
	}
	defer func() {
		for _, d := range databases {
			if d.server != nil {
				err = errors.Join(err, d.server.Stop())
			}
		}
	}()
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// each runs a test on each database.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

// open connects to the database, in a schema of the test's own.
func (d *database) open(t *testing.T) *sql.DB {
	t.Helper()
	return d.connect(t, d.dsn(d.server.Address()))
}

// connect opens a pool that is closed with the test.
func (d *database) connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// store opens the database as a migrated store with an empty table account.
func (d *database) store(t *testing.T) (*sql.DB, *sqlfence.Store) {
	t.Helper()
	db := d.open(t)
	d.exec(t, db, `DROP TABLE IF EXISTS fencing_marks`, `DROP TABLE IF EXISTS account`, `DROP TABLE IF EXISTS journal`,
		`CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fencing_token BIGINT NOT NULL DEFAULT 0)`,
		`CREATE TABLE journal (resource VARCHAR(64) NOT NULL, seq BIGINT NOT NULL, token BIGINT NOT NULL, writer VARCHAR(64) NOT NULL, PRIMARY KEY (resource, seq))`)
	if err := sqlfence.Migrate(t.Context(), db, d.dialect); err != nil {
		t.Fatal(err)
	}
	store, err := sqlfence.Open(t.Context(), db, d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	return db, store
}

// exec runs statements.
func (d *database) exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// sql is a statement with the placeholders of PostgreSQL, for this database: those of
// MySQL have no numbers, so each must stand in its order, and once.
func (d *database) sql(statement string) string {
	if d.dialect == sqlfence.MySQL {
		for i := range 9 {
			statement = strings.ReplaceAll(statement, fmt.Sprintf("$%d", i+1), "?")
		}
	}
	return statement
}

// number is the one number that a query finds.
func number(t *testing.T, db *sql.DB, query string) int64 {
	t.Helper()
	var n int64
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
