package store

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzReceived reads whatever a server may send as a vector.
func FuzzReceived(f *testing.F) {
	f.Add([]byte{0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0})
	f.Add([]byte{0, 3, 0, 0, 0x3f, 0x80, 0, 0})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, sent []byte) {
		v, err := decodePgvector(sent)
		if err == nil && len(sent) != 4+4*len(v) || err != nil && v != nil {
			t.Errorf("%d bytes: %v, %v", len(sent), v, err)
		}
	})
}

func TestReceived(t *testing.T) {
	got, err := decodePgvector([]byte{0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0})
	if diff := cmp.Diff([]float32{1, -2}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestTextOf(t *testing.T) {
	if got, want := pgvectorLiteral([]float32{1, -0.5, 1e-9, math.SmallestNonzeroFloat32}),
		"[1,-0.5,1e-09,1e-45]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNames sees that both tables are named by the collection, and the place without its password.
func TestNames(t *testing.T) {
	k, name, err := openPgvector("postgres://u:hunter2@127.0.0.1:1/db", "team_tools")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if got, want := k.tables.Replace("SELECT 1 FROM VECTORS, MODELS"),
		`SELECT 1 FROM "team_tools", "team_tools_models"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if want := "postgres://127.0.0.1:1/db"; name != want || strings.Contains(name, "hunter2") {
		t.Errorf("it is called %s, want %s", name, want)
	}
}
