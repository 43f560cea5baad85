package config

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
)

var update = flag.Bool("update", false, "write the golden files")

// fixture copies a program's files to a world of their own, where $PROJECT is the project's path and $ROOT that of
// the world.
func fixture(t *testing.T, w *world, name string) {
	t.Helper()
	from := os.DirFS(filepath.Join("testdata", name))
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "want.json" {
			return err
		}
		data, err := fs.ReadFile(from, path)
		w.write(t, path, strings.NewReplacer("$PROJECT", filepath.ToSlash(w.path("project")), "$ROOT",
			filepath.ToSlash(w.root)).Replace(string(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) options() Options {
	return Options{
		Dir: w.path("project"), Home: w.path("home"),
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
	}
}

func (w *world) mustScan(t *testing.T, from ...string) ImportScan {
	t.Helper()
	found, err := ScanImports(w.options(), from)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFixtures reads files in the real shape of each program, and compares all that is made of them. With -update the
// golden files are written anew.
func TestFixtures(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the fixtures stand where Linux has them")
	}
	for _, p := range Providers() {
		t.Run(p.Name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.env = map[string]string{"SEARCH_KEY": "s3cret", "OLD_TOKEN": "0ld", "API_KEY": "k3y",
				"HOME": w.path("home")}
			fixture(t, w, p.Name)
			o := w.options()
			o.Approved = func(s Server) bool { return s.ID != "db" }
			set, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			found := w.mustScan(t)
			got := map[string]any{
				"servers": asText(set.Servers), "shadowed": asText(set.Shadowed), "warnings": set.Warnings,
				"sources": set.Sources,
				"found":   foundAsText(found.Candidates), "scan warnings": found.Warnings,
				"scan sources": found.Sources,
			}
			golden(t, filepath.Join("testdata", p.Name, "want.json"), w, got)
		})
	}
}

// asText makes a text of each Row, whose order counts.
func asText(rows []Server) []Server {
	for i, s := range rows {
		rows[i].Raw, _ = json.Marshal(string(s.Raw))
	}
	return rows
}

func foundAsText(rows []ImportCandidate) []ImportCandidate {
	for i, f := range rows {
		rows[i].Raw, _ = json.Marshal(string(f.Raw))
	}
	return rows
}

// golden compares a value with a file, as JSON without what is empty, the world's directory left out.
func golden(t *testing.T, path string, w *world, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	data, err = json.MarshalIndent(full(tree), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(data)+"\n", w.root, "$ROOT")
	got = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(got)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, path, string(want), got)
}

// full leaves out what is empty, and the hash: it has tests of its own.
func full(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			inner = full(inner)
			if inner == nil || inner == "" || inner == false || inner == 0.0 || name == "Hash" {
				delete(v, name)
				continue
			}
			v[name] = inner
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = full(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

// everyone puts the files of all programs into one home and one project.
func everyone(t *testing.T) *world {
	w := newWorld(t, nil)
	for _, p := range Providers() {
		fixture(t, w, p.Name)
	}
	return w
}

// write puts what is new into the person's own file, as an import does.
func importAll(t *testing.T, w *world, found ImportScan) {
	t.Helper()
	rows := map[drawbridge.ServerID]json.RawMessage{}
	for _, f := range found.Candidates {
		if f.Status == ImportNew {
			rows[f.Name] = f.Raw
		}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": rows})
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, userJSON, string(data))
}

// TestASecondScanFindsNothingNew imports from all programs at once, into nothing.
func TestASecondScanFindsNothingNew(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the fixtures stand where Linux has them")
	}
	w := everyone(t)
	if err := os.RemoveAll(w.path("home/.config/drawbridge")); err != nil {
		t.Fatal(err)
	}
	first := w.mustScan(t)
	importAll(t, w, first)
	second := w.mustScan(t)
	for i, f := range second.Candidates {
		want := first.Candidates[i].Status
		if want == ImportNew {
			want = ImportSame
		}
		if f.Status != want {
			t.Errorf("%s of %s is %s, was %s", f.Name, f.Provider, f.Status, first.Candidates[i].Status)
		}
	}
	set := w.mustLoad(t)
	loaded := map[drawbridge.ServerID]Server{}
	for _, s := range set.Servers {
		if s.ImportedFrom != "" {
			loaded[s.ID] = s
		}
	}
	news := 0
	for _, f := range first.Candidates {
		if f.Status != ImportNew {
			continue
		}
		news++
		if s := loaded[f.Name]; s.Phase == drawbridge.Refused || string(s.Raw) != string(f.Raw) ||
			s.ImportedFrom != f.Provider {
			t.Errorf("%s of %s is %s %s: %s", f.Name, f.Provider, s.Phase, s.Reason, s.Raw)
		}
	}
	if news < 25 || len(loaded) != news {
		t.Errorf("%d new, %d loaded", news, len(loaded))
	}
}

// FuzzProviders feeds each program's reader: nothing panics, what may be mounted can be, and what would be written is
// read back as the same. It is row FZ-14.
func FuzzProviders(f *testing.F) {
	providers := clientconfig.Providers()
	for i, p := range providers {
		err := filepath.WalkDir(filepath.Join("testdata", p.Name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "want.json" {
				return err
			}
			data, err := os.ReadFile(path)
			f.Add(uint8(i), uint8(0), data)
			f.Add(uint8(i), uint8(len(p.Locations)-1), data)
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, i, j uint8, data []byte) {
		p := providers[int(i)%len(providers)]
		shape := p.Locations[int(j)%len(p.Locations)].Shape
		set, err := loadBytes(data, p.Name, shape)
		if err != nil {
			return
		}
		if p.Name != "goose" { // a merge key may bring a row from elsewhere
			checkMountable(t, set, 1+strings.Count(string(data), "\n"))
		}
		for _, s := range set.Mountable() {
			again, err := loadBytes([]byte(`{"servers": {"`+string(s.ID)+`": `+string(s.Raw)+`}}`), "native",
				clientconfig.NativeDialect("a.json"))
			if err != nil || len(again.Servers) != 1 || again.Servers[0].Phase != drawbridge.Idle {
				t.Fatalf("%s is read back as %v, %v", s.Raw, again, err)
			}
			if a := again.Servers[0]; string(a.Raw) != string(s.Raw) {
				t.Errorf("%s is read back as %s", s.Raw, a.Raw)
			}
		}
	})
}

// shapeOf is the shape of a provider's first file.
func shapeOf(provider string) *clientconfig.Dialect {
	for _, p := range clientconfig.Providers() {
		if p.Name == provider {
			return p.Locations[0].Shape
		}
	}
	return nil
}

func quoteJSON(s string) string {
	data, _ := json.Marshal(s) // a string always encodes
	return string(data)
}

func unquoteJSON(data string) (s string) {
	_ = json.Unmarshal([]byte(data), &s) // it was encoded by quoteJSON
	return s
}
