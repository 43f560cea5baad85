package login

import (
	"context"
	"errors"
	"regexp"
	"strings"
)

// refusal is a status by which servers refuse somebody, and no part of another number.
var refusal = regexp.MustCompile(`\b40[13]\b`)

// Tip is the next thing to try after a failed test.
func Tip(fault error) string {
	text := strings.ToLower(fault.Error())
	switch {
	case errors.Is(fault, context.DeadlineExceeded) || strings.Contains(text, "timeout") || strings.Contains(text, "timed out"):
		return "The server may be slow or unresponsive. Try increasing the timeout."
	case Unauthorized(fault) || refusal.MatchString(text):
		return "Check your authentication credentials."
	case strings.Contains(text, "connection refused"):
		return "Check that the server is running and that its URL is right."
	case strings.Contains(text, "not found"):
		return "Check that the command is installed and on the PATH."
	}
	return ""
}
