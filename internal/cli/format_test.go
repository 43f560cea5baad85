package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
)

// TestJSONActsOnNoTerminal prints what a server may have said: who reads the JSON gets it as it was, and a terminal
// nothing that acts on it or cannot be seen.
func TestJSONActsOnNoTerminal(t *testing.T) {
	const said = "caf\u00e9 <b> \u202egnp\u202c \u009b2J \x1b[2J \u200b \U000e0041 \u007f"
	var b bytes.Buffer
	if err := cli.PrintJSON(&b, map[string]string{"said": said}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "caf\u00e9 <b>") {
		t.Errorf("what can be seen is not printed as it is: %s", b.String())
	}
	for _, r := range "\u202e\u202c\u009b\x1b\u200b\U000e0041\u007f" {
		if strings.ContainsRune(b.String(), r) {
			t.Errorf("%U is printed as it is", r)
		}
	}
	var read map[string]string
	if err := json.Unmarshal(b.Bytes(), &read); err != nil || read["said"] != said {
		t.Errorf("%+q, %v", read, err)
	}
}
