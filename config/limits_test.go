package config

import (
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

func FuzzPer(f *testing.F) {
	for _, s := range []string{"1000/day", "5/1h30m", "5", "/day", "0/day", "9/week ", "-1/minute", "1/0s",
		"9999999999999999999/hour"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var calls int
		var every time.Duration
		err := readCallRate(&calls, &every, configfile.Node{Kind: configfile.Text, Text: text})
		if ok := calls > 0 && every > 0; ok != (err == nil) {
			t.Errorf("%q: %d calls in %v, %v", text, calls, every, err)
		}
	})
}

func TestSecondsStaySeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"1": time.Second, "0.5": time.Second / 2, "3600": time.Hour} {
		var d time.Duration
		if err := readSeconds(&d, configfile.Node{Kind: configfile.Number, Text: text}); err != nil || d != want {
			t.Errorf("%s seconds are %v, %v", text, d, err)
		}
	}
	var d time.Duration
	if err := readSeconds(&d, configfile.Node{Kind: configfile.Number, Text: "1e15"}); err == nil {
		t.Error("more time than there is:", d)
	}
}
