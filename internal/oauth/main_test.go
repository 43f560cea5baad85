//go:build unix

package oauth

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// roleVariable has the test binary be a process that signs in, with the provider's server and the vault's directory as
// its arguments.
const roleVariable = "SIGNIN_ROLE"

func TestMain(m *testing.M) {
	oauthtest.Run()
	role := map[string]func(context.Context, *Credential) error{"many": many, "one": one}[os.Getenv(roleVariable)]
	if role == nil {
		goleak.VerifyTestMain(m)
		return
	}
	if err := play(role); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// play is such a process: it says that it is there, and begins when its standard input ends.
func play(role func(context.Context, *Credential) error) error {
	v, err := realVault(os.Args[2])
	if err != nil {
		return err
	}
	desk := NewManager(ManagerOptions{Vault: v})
	defer desk.Close()
	c := desk.Credential(Server{ID: "protected", URL: os.Args[1]}, nil)
	fmt.Println("here")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return role(context.Background(), c)
}
