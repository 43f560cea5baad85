package secrets

import "testing"

func TestACommandWithQuotes(t *testing.T) {
	var c CommandRunner
	value, err := c.Value(t.Context(), `echo "a b"& echo c`, nil)
	if want := "\"a b\"\r\nc"; value != want || err != nil {
		t.Errorf("%q, %v, want %q", value, err, want)
	}
}
