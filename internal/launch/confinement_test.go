package launch

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, text string) (Confinement, error) {
	t.Helper()
	row, err := configfile.ParseJSON([]byte(`{"confine": ` + text + `}`))
	if err != nil {
		t.Skip("no JSON")
	}
	m, _ := row.Find("confine")
	return ReadConfinement(m.Value, "/me", func(s string) string { return strings.ReplaceAll(s, "${X}", "x") })
}

func TestReadConfinement(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	for text, want := range map[string]Confinement{
		`"off"`:                            {},
		`"auto"`:                           {Level: "auto"},
		`"required"`:                       {Level: "required"},
		`{}`:                               {Level: "required"},
		`{"level": "off", "read": ["/r"]}`: {Read: []string{"/r"}},
		`{"level": "auto", "read": ["~/r", "~", "rel/../${X}"], "write": ["/w/", "~me"], "network": false}`: {
			Level: "auto", Read: []string{"/me/r", "/me", "/dir/x"}, Write: []string{"/w", "/dir/~me"}, Offline: true,
		},
		`{"network": true}`: {Level: "required"},
	} {
		got, err := read(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got.RelativeTo("/dir")); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		`null`:                `"confine" must be "off", "auto" or "required", or an object`,
		`true`:                `"confine" must be "off", "auto" or "required", or an object`,
		`"Required"`:          `"confine" must be "off", "auto" or "required", or an object`,
		`{"level": ""}`:       `"confine" must be "off", "auto" or "required", or an object`,
		`{"read": [1]}`:       `"confine.read" must be a list of paths`,
		`{"network": "none"}`: `"confine.network" must be true or false`,
		`{"x\u001b": 1}`:      `"confine" has no member "x\u001b"`,
	} {
		if got, err := read(t, text); err == nil || err.Error() != want || !cmp.Equal(got, Confinement{}) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// FuzzReadConfinement shows that whatever is read keeps a program to something, or is "off" by name, or is refused;
// and that its paths are absolute.
func FuzzReadConfinement(f *testing.F) {
	for _, s := range []string{`"off"`, `"auto"`, `{}`, `{"level":"off"}`,
		`{"read":["~"],"write":[""],"network":false}`, `[]`, `{"level":"auto","level":"off"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := read(t, text)
		if err == nil && c.Level == "" && !strings.Contains(text, "off") && !strings.Contains(text, `\u`) {
			t.Errorf("%s keeps to nothing", text)
		}
		if c = c.RelativeTo(filepath.FromSlash("/dir")); runtime.GOOS == "windows" {
			return
		}
		for _, p := range append(c.Read, c.Write...) {
			if !filepath.IsAbs(p) || p != filepath.Clean(p) {
				t.Errorf("%s names %q", text, p)
			}
		}
	})
}
