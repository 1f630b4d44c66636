// Package sqlfence checks fencing tokens in PostgreSQL, MySQL and MariaDB, through
// database/sql: a transaction of an old leader that wakes up too late is refused by
// the database itself, in the very transaction that would have written.
//
// # Two fences
//
// A row fence keeps the mark, the highest token that ever wrote a row, in the row.
// [Store.Update] runs an UPDATE of your own that compares the mark and raises it:
//
//	UPDATE account SET balance = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2
//
// and tells why where it updates nothing: the token is stale, or there is no such row.
//
// A resource fence keeps the mark in a small table of its own. [Store.Fence], at the
// start of a transaction, raises the mark or fails, and holds it until the
// transaction ends: everything in the transaction is fenced, whatever it touches.
// Both hold at every isolation level of either database.
//
// # Stale means: work it out anew
//
// What an old leader has in hand comes from what it read, and may be wrong by now. So
// a stale transaction is rolled back as a whole, and its token never tried again.
// [Runner] does that: where it is given a [Leadership] it leads again, and runs the whole
// transaction anew, reading again, with the new token. Deadlocks and serialization
// failures are no matter of leadership: it retries them with the same token.
//
// # What it leaves to others
//
// It imports no driver, nor leader election: the token may come from package leader,
// from the environment of kubectl fence run, or from elsewhere. It is tried with
// github.com/jackc/pgx/v5/stdlib and github.com/go-sql-driver/mysql. Tables must be
// transactional (InnoDB). Statements that present no token are not fenced: the database
// asks nobody for a token by itself.
//
// The rule is that of section 8 of the design: the mark stands beside the data, and is
// checked in the same transaction.
package sqlfence
