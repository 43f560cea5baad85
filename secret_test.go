package drawbridge_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestSecretShowsNothing prints a secret in every way there is, by itself and within what holds it.
func TestSecretShowsNothing(t *testing.T) {
	const text = "hunter2-canary"
	secret := drawbridge.NewSecret(text)
	caller := drawbridge.Caller{Principal: "ada", AccessToken: secret}
	type wrapped struct{ Inner any }
	type hidden struct{ inner drawbridge.Caller }
	for _, v := range []any{secret, &secret, []drawbridge.Secret{secret}, caller, &caller, wrapped{caller},
		hidden{caller}, &hidden{caller}, map[string]drawbridge.Secret{"k": secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s"} {
			if got := fmt.Sprintf(verb, v); shows(got, text) {
				t.Errorf("%s of %T shows it: %s", verb, v, got)
			}
		}
		raw, err := json.Marshal(v)
		if err != nil || shows(string(raw), text) {
			t.Errorf("JSON of %T: %v, %s", v, err, raw)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("a sentence", "value", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("a sentence", "value", v)
		if shows(log.String(), text) {
			t.Errorf("a log shows %T: %s", v, log.String())
		}
	}
	raw, err := xml.Marshal(secret)
	if err != nil || shows(string(raw), text) {
		t.Errorf("XML: %v, %s", err, raw)
	}
	if got := fmt.Sprint(secret); got != drawbridge.Redacted {
		t.Errorf("it prints as %q", got)
	}
	if got := secret.Reveal(); got != text {
		t.Errorf("revealed it is %q", got)
	}
}

func shows(printed, text string) bool {
	return strings.Contains(printed, text) || strings.Contains(printed, text[:6]) ||
		strings.Contains(strings.ToLower(printed), fmt.Sprintf("%x", text[:6]))
}

func TestSecretOfNothing(t *testing.T) {
	var none drawbridge.Secret
	if !none.IsZero() || none.String() != "" || none != drawbridge.NewSecret("") || none == drawbridge.NewSecret("x") {
		t.Errorf("the zero secret is %q", none)
	}
	raw, err := json.Marshal(struct {
		S drawbridge.Secret `json:"s,omitzero"`
	}{})
	if err != nil || string(raw) != "{}" {
		t.Errorf("it encodes as %s, %v", raw, err)
	}
}
