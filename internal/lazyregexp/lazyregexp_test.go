package lazyregexp_test

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

func TestNewCompilesOnFirstUse(t *testing.T) {
	valid, invalid := lazyregexp.New(`^[0-9]+$`), lazyregexp.New(`(`)
	first, second := valid(), valid()
	if !first.MatchString("12") || first != second {
		t.Error("the expression is not compiled once, or does not match")
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression does not panic when it is used")
		}
	}()
	invalid()
}
