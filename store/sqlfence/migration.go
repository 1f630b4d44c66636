package sqlfence

import (
	"context"
	"database/sql"
	_ "embed" // the migrations
	"fmt"
	"strings"
)

var (
	//go:embed migrations/postgresql.sql
	postgresqlMigration string
	//go:embed migrations/mysql.sql
	mysqlMigration string
)

// Migration is the SQL that creates the table of resource fences, fencing_marks. It
// changes nothing where the table is there. It is for tools that migrate; [Migrate] runs it.
func Migration(dialect Dialect) string { return dialect.statements().migration }

// Migrate runs [Migration]. Several programs may do so at the same time. It needs the
// right to create tables, which the rest of the package does not: SELECT, INSERT and
// UPDATE on fencing_marks are enough for that.
func Migrate(ctx context.Context, db *sql.DB, dialect Dialect) error {
	if err := dialect.validate(); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit

	var statements []string
	if lock := dialect.statements().lockMigration; lock != "" {
		statements = append(statements, lock)
	}
	// One at a time: few drivers take several. None has a semicolon inside.
	for statement := range strings.SplitSeq(Migration(dialect), ";\n") {
		if strings.TrimSpace(statement) != "" {
			statements = append(statements, statement)
		}
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("sqlfence: the migration failed: %w", explain(err))
		}
	}
	return tx.Commit()
}
