package sqlfence

import "fmt"

// Dialect is the SQL that a database speaks.
type Dialect int

// The dialects. [MySQL] is MariaDB's as well.
const (
	PostgreSQL Dialect = iota + 1
	MySQL
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

func (d Dialect) validate() error {
	if d != PostgreSQL && d != MySQL {
		return fmt.Errorf("sqlfence: the dialect is PostgreSQL or MySQL, not %s", d)
	}
	return nil
}

// statements are what differs between the dialects.
type statements struct {
	migration string

	// lockMigration keeps migrations at the same time apart, where IF NOT EXISTS
	// itself does not.
	lockMigration string

	// probe updates the row without a name to what it is.
	probe string

	// raise makes the mark of resource $1 the token $2, unless it is larger, and
	// locks its row either way.
	raise string

	// raiseArgs are the arguments of raise.
	raiseArgs func(resource string, token int64) []any

	// mark reads the mark that raise left. It must not read an old snapshot.
	mark string

	// reread explains an update of no row, and stored what an update of one has
	// stored: where a statement returns that itself, stored is empty. Their words
	// {column}, {table} and {key} are to be replaced.
	reread, stored string
}

func (d Dialect) statements() statements {
	if d == MySQL {
		return mysqlStatements
	}
	return postgresqlStatements
}

var postgresqlStatements = statements{
	migration:     postgresqlMigration,
	lockMigration: `SELECT pg_advisory_xact_lock(hashtext('fencing_marks'))`,
	probe:         `UPDATE fencing_marks SET token = token WHERE resource = ''`,
	// The condition is judged on the newest committed row, under its lock, and the
	// row stays locked if it does not hold. At REPEATABLE READ and above a row that
	// is newer than the snapshot is a serialization failure.
	raise: `INSERT INTO fencing_marks AS m (resource, token) VALUES ($1, $2)
		ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token WHERE m.token <= EXCLUDED.token`,
	raiseArgs: func(resource string, token int64) []any { return []any{resource, token} },
	mark:      `SELECT token FROM fencing_marks WHERE resource = $1`,
	reread:    `SELECT {column} FROM {table} WHERE {key}`,
}

var mysqlStatements = statements{
	migration: mysqlMigration,
	probe:     `UPDATE fencing_marks SET token = token WHERE resource = ''`,
	// There is no condition on the update of a duplicate. GREATEST never lowers.
	raise: `INSERT INTO fencing_marks (resource, token) VALUES (?, ?)
		ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`,
	raiseArgs: func(resource string, token int64) []any { return []any{resource, token, token} },
	// At REPEATABLE READ an UPDATE sees the newest rows, and a SELECT an old
	// snapshot, unless it locks.
	mark:   `SELECT token FROM fencing_marks WHERE resource = ? FOR UPDATE`,
	reread: `SELECT {column} FROM {table} WHERE {key} FOR UPDATE`,
	stored: `SELECT {column} FROM {table} WHERE {key}`,
}
