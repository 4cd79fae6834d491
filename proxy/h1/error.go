package h1

import (
	"net/http"
	"strconv"
)

// Error says why a message is refused.
type Error struct {
	// Status is what to answer a client: 400, 405, 417, 431, 501 or 505. In the error
	// of [Response.Parse] it is 502; [HeadEnd] and [Chunked] cannot know which side they
	// read, so who reads a response with them answers 502 whatever they say.
	Status int
	// Problem names the part of the message, what is wrong with it and what is right.
	// It holds no bytes of the message but field names, which are tokens.
	Problem string
}

// Error implements error: "400 Bad Request: " and the problem.
func (e *Error) Error() string {
	return strconv.Itoa(e.Status) + " " + http.StatusText(e.Status) + ": " + e.Problem
}

func bad(problem string) *Error { return &Error{http.StatusBadRequest, problem} }

var (
	errBareLF  = bad("line ends with LF alone: every line of a head ends with CR LF")
	errBareCR  = bad("CR inside a line: a CR stands only before the LF that ends a line")
	errNUL     = bad("NUL in the head: no part of a head may hold one")
	errNoEnd   = bad("head does not end with an empty line")
	errControl = bad("control character in a field value: only tab is allowed")

	errFold       = bad("line begins with white space: folded field lines are obsolete, send each field on one line")
	errNoColon    = bad("field line has no colon: a field is a name, a colon and a value")
	errEmptyName  = bad("field line begins with a colon: the field's name is missing")
	errSpaceColon = bad("white space in or after a field name: the colon follows the name directly")
	errName       = bad("field name holds a character that is not allowed: names are letters, digits and !#$%&'*+-.^_`|~")
	errFields     = &Error{http.StatusRequestHeaderFieldsTooLarge, "more than 256 fields"}

	errTwoLengths  = bad("more than one Content-Length field: send one")
	errLength      = bad("Content-Length is not a plain decimal number below 2^63")
	errTwoCodings  = bad("more than one Transfer-Encoding field: send one, chunked")
	errCodingList  = bad("Transfer-Encoding must be chunked, once, and nothing after it")
	errCoding      = &Error{http.StatusNotImplemented, "unknown transfer coding: Transfer-Encoding must be chunked"}
	errCodingIn10  = bad("Transfer-Encoding in an HTTP/1.0 message: it exists since HTTP/1.1")
	errTwoFramings = bad("both Content-Length and Transfer-Encoding: send one of them")
	errTab         = bad("tab in Content-Length or Transfer-Encoding: send the value without it")

	errOption = bad("Connection holds something that is not a connection option: options are tokens, separated by " +
		"commas")
	errOptions    = bad("Connection names more than 16 options")
	errUpgrade    = bad("Upgrade is not a list of protocols: a protocol is a token, or a token, a slash and a version")
	errTwoUpgrade = bad("more than one Upgrade field: send one list")
)
