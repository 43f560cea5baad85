//go:build peers

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// Chromium as a person uses it whom a command sends to sign in: this test binary is what $BROWSER names, and it
// presses the button of the page that it is given.
const (
	aPerson = "person"
	// seen names the file that the text of the last page is written to.
	seen = "PEERS_SEEN"
)

func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// playPerson opens the address that the browser is started with, allows what the page asks for, and reads the page
// after it.
func playPerson(args []string) int {
	text, err := allow(args)
	if err != nil {
		text = "error: " + err.Error()
	}
	part := os.Getenv(seen) + ".part"
	if err := errors.Join(os.WriteFile(part, []byte(text), 0o600), os.Rename(part, os.Getenv(seen))); err != nil {
		return 1
	}
	return 0
}

func allow(args []string) (text string, err error) {
	if len(args) != 1 {
		return "", fmt.Errorf("%d arguments, want the address alone", len(args))
	}
	profile, err := os.MkdirTemp("", "drawbridge-peers-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(profile)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctx, end := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(chromium()), chromedp.UserDataDir(profile),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true))
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	if err := chromedp.Do(ctx, chromedp.Navigate(args[0])); err != nil {
		return "", err
	}
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS("#allow"))); err != nil {
		return "", err
	}
	return chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
}

// TestSignInWithARealBrowser signs in with Chromium, which is shown the provider's page and comes back to the command.
func TestSignInWithARealBrowser(t *testing.T) {
	if chromium() == "" {
		t.Skip("there is no Chromium here: apt-get install chromium")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := oauthtest.New(t,
		oauthtest.Options{Knobs: oauthtest.Knobs{Authorization: oauthtest.Authorization{Consent: true}}})
	home := t.TempDir()
	if err := configure(home, []row{{Name: "protected", Type: "http", URL: p.ResourceURL}}); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(home, "page")
	cmd := exec.CommandContext(limit(t, 2*time.Minute), drawbridge, commandLine(home, "mcp", "auth",
		"protected", "--json")...)
	cmd.Dir = home
	cmd.Env = append(homely(home), "DRAWBRIDGE_KEYCHAIN=off", "BROWSER="+self, role+"="+aPerson, seen+"="+page)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	text := read(t, page)
	if !strings.Contains(text, "Authorization successful. You can close this tab.") {
		t.Errorf("the browser ended at %q", text)
	}
	var got struct {
		Outcome string
		Tools   int
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Outcome != "signed in" || got.Tools != 2 {
		t.Errorf("%s, %v", out, err)
	}
}

// read waits for a file and gives what it has.
func read(t *testing.T, path string) string {
	t.Helper()
	ctx := limit(t, 30*time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(path)
		if err == nil {
			return string(text)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("there is no %s", filepath.Base(path))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
