package secrets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/google/go-cmp/cmp"
)

func TestKnown(t *testing.T) {
	var k secrets.KnownSecrets
	k.Note("short", "long enough", "long enough", "another one")
	if diff := cmp.Diff([]string{"long enough", "another one"}, k.All()); diff != "" {
		t.Error(diff)
	}
	before := k.All()
	for n := range 2000 {
		k.Note(fmt.Sprintf("value %04d", n))
	}
	if all := k.All(); len(all) != 1000 || all[0] != "value 1000" || len(before) != 2 {
		t.Errorf("%d values from %q on, and %d before", len(all), all[0], len(before))
	}
}

// TestWhatReferencesStandForIsKnown finds values of each kind.
func TestWhatReferencesStandForIsKnown(t *testing.T) {
	vault, err := secrets.OpenVault(t.TempDir(), secrets.VaultOptions{NoKeychain: true})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("in a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := vault.UserSecrets().Put("mine", []byte("in the vault")); err != nil {
		t.Fatal(err)
	}
	r := secrets.Resolver{Keychain: vault.UserSecrets()}
	for kind, text := range map[secrets.ReferenceKind]string{secrets.FileReference: file,
		secrets.KeychainReference: "mine"} {
		if _, err := r.Value(t.Context(), kind, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	known := map[string]bool{}
	for _, value := range vault.Known().All() {
		known[value] = true
	}
	if diff := cmp.Diff(map[string]bool{"in a file": true, "in the vault": true}, known); diff != "" {
		t.Error(diff)
	}
}
