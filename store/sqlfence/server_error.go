package sqlfence

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// serverError is what a database answered: an SQLSTATE of PostgreSQL, or the number of
// an error of MySQL. The zero value stands for no answer.
type serverError struct {
	state  string
	number uint16
}

// serverErrorOf finds the answer of the server in an error, without knowing the driver:
// those of PostgreSQL have a method SQLState, that of MySQL has a struct with a Number.
func serverErrorOf(err error) serverError {
	if e := interface{ SQLState() string }(nil); errors.As(err, &e) {
		return serverError{state: e.SQLState()}
	}
	return serverError{number: numberOf(err)}
}

// numberOf is the first Number in the tree of an error, 0 if there is none.
func numberOf(err error) uint16 {
	if err == nil {
		return 0
	}
	value := reflect.Indirect(reflect.ValueOf(err))
	if value.Kind() == reflect.Struct {
		if field, ok := value.Type().FieldByName("Number"); ok && len(field.Index) == 1 { // not of an embedded struct
			if number, ok := value.FieldByIndex(field.Index).Interface().(uint16); ok {
				return number
			}
		}
	}
	if several, ok := any(err).(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			if number := numberOf(err); number != 0 {
				return number
			}
		}
		return 0
	}
	return numberOf(errors.Unwrap(err))
}

func (e serverError) is(kind answers) bool {
	return slices.Contains(kind.states, e.state) || slices.Contains(kind.numbers, e.number)
}

// answers are those that mean the same.
type answers struct {
	states  []string
	numbers []uint16
}

// Sources: PostgreSQL, appendix A, "PostgreSQL Error Codes"; MySQL, "Server Error
// Message Reference"; MariaDB, "Error Code Reference".
var (
	// transient: the same transaction may succeed if it is run again.
	transient = answers{
		// serialization_failure, deadlock_detected
		states: []string{"40001", "40P01"},
		// ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_CHECKREAD (MariaDB with
		// innodb_snapshot_isolation)
		numbers: []uint16{1213, 1205, 1020},
	}
	readOnly = answers{
		// read_only_sql_transaction
		states: []string{"25006"},
		// ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_OPTION_PREVENTS_STATEMENT,
		// ER_READ_ONLY_MODE
		numbers: []uint16{1792, 1290, 1836},
	}
	outOfRange = answers{
		// numeric_value_out_of_range
		states: []string{"22003"},
		// ER_WARN_DATA_OUT_OF_RANGE
		numbers: []uint16{1264},
	}
	aborted = answers{
		// in_failed_sql_transaction
		states: []string{"25P02"},
	}
	noSavepoint = answers{
		// ER_SP_DOES_NOT_EXIST
		numbers: []uint16{1305},
	}
	noTable = answers{
		// undefined_table
		states: []string{"42P01"},
		// ER_NO_SUCH_TABLE
		numbers: []uint16{1146},
	}
)

// explain adds what a server's answer means for a fence.
func explain(err error) error {
	answer := serverErrorOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrReadOnly), errors.Is(err, ErrAborted), errors.Is(err, ErrRange):
		return err // has been explained
	case answer.is(readOnly):
		return fmt.Errorf("sqlfence: %w: %w", ErrReadOnly, err)
	case answer.is(aborted):
		return fmt.Errorf("sqlfence: %w: %w", ErrAborted, err)
	// pgx knows the types of parameters, and refuses before it sends.
	case answer.is(outOfRange), strings.Contains(err.Error(), "is greater than maximum value for int"):
		return fmt.Errorf("sqlfence: %w: %w", ErrRange, err)
	}
	return err
}

// explainCommit says what an error of COMMIT means. Only an answer of the server tells
// that nothing was committed, and not every answer does.
func explainCommit(err error) error {
	answer := serverErrorOf(err)
	switch {
	case err == nil:
		return nil
	// Both drivers of PostgreSQL turn a ROLLBACK in answer to COMMIT into an error.
	case strings.Contains(err.Error(), "commit unexpectedly resulted in rollback"),
		strings.Contains(err.Error(), "Could not complete operation in a failed transaction"):
		return fmt.Errorf("sqlfence: %w: %w", ErrAborted, err)
	// A transaction is rolled back for these (class 40 without 40003,
	// statement_completion_unknown), and for constraints that are checked in the end.
	case answer.is(transient), strings.HasPrefix(answer.state, "23"):
		return err
	}
	return fmt.Errorf("sqlfence: %w: %w", ErrCommitUnknown, err)
}
