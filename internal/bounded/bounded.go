// Package bounded keeps what others chose to a length that fits an Event, a
// condition, a log line or an audit record.
package bounded

import "strings"

// ellipsis marks a text that was cut.
const ellipsis = "…"

// String is s, cut to at most so many bytes, which must be 3 or more; a text that
// was cut ends in "…" and stays valid UTF-8.
func String(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}
