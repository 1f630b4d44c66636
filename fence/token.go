package fence

import (
	"errors"
	"strconv"
)

// Token is a fencing token: from 1 to [MaxToken], one per term. Zero, [None],
// stands for no token.
type Token int64

const (
	// None is the absence of a token.
	None Token = 0

	// MaxToken is 2^53-1, the largest integer that every JSON reader keeps whole.
	MaxToken Token = 1<<53 - 1
)

// maxTokenDigits is the number of digits of MaxToken.
const maxTokenDigits = 16

// ErrToken is what [ParseToken] returns for anything but a token.
var ErrToken = errors.New("a fencing token is an integer from 1 to 9007199254740991 in base 10, without sign, spaces or leading zeros")

// ParseToken reads a token in canonical base 10, so that every token has one
// spelling. It returns [ErrToken] for anything else; its cost does not grow with
// the length of the input.
func ParseToken(s string) (Token, error) {
	if s == "" || len(s) > maxTokenDigits || s[0] == '0' {
		return None, ErrToken
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return None, ErrToken
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || Token(n) > MaxToken {
		return None, ErrToken
	}
	return Token(n), nil
}

// String is the canonical spelling of the token, and "none" for [None].
func (t Token) String() string {
	if t == None {
		return "none"
	}
	return strconv.FormatInt(int64(t), 10)
}

// tokenOrNone reads a stored token. One that is not canonical counts as absent.
func tokenOrNone(s string) Token {
	t, err := ParseToken(s)
	if err != nil {
		return None
	}
	return t
}
