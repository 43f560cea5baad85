package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// openBrowser opens an address in a browser, and does not wait until the browser ends. The error is the reason why no
// browser was started; the caller adds "open it yourself".
func (d signInCommands) openBrowser(address string) error {
	if err := checkBrowserURL(address); err != nil {
		return err
	}
	words, err := d.browserCommand()
	if err != nil {
		return err
	}
	cmd := exec.Command(words[0], append(words[1:], address)...)
	cmd.Env = d.Environ
	startNewSession(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no browser started: %w", err)
	}
	var reaping sync.WaitGroup // the browser may outlive this process
	reaping.Go(func() {
		if err := cmd.Wait(); err != nil {
			safetext.Fprintf(d.Err, "%s: %v; open the address yourself.\r\n", words[0], err)
		}
	})
	return nil
}

// checkBrowserURL returns an error unless an address is an http or https URL without spaces, quotes and angle brackets.
// A server chooses the address, and the address becomes an argument of the browser's command.
func checkBrowserURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.HasPrefix(address, "-") ||
		strings.ContainsFunc(address, func(r rune) bool {
			return r <= ' ' || r == 0x7f ||
				strings.ContainsRune("\"'`<>", r)
		}) {
		return errors.New("not an address for a browser")
	}
	return nil
}

// browserCommand returns the program that opens addresses, followed by its arguments before the address.
func (d signInCommands) browserCommand() ([]string, error) {
	if named, _ := d.Env("BROWSER"); named != "" {
		if _, err := exec.LookPath(named); err == nil {
			return []string{named}, nil // a path may contain spaces
		}
		words, err := admin.SplitWords(named)
		if err != nil || len(words) == 0 {
			return nil, errors.New("the variable BROWSER names no program")
		}
		return words, nil
	}
	switch runtime.GOOS {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}, nil
	case "darwin":
		return []string{"open"}, nil
	}
	x11, _ := d.Env("DISPLAY")
	wayland, _ := d.Env("WAYLAND_DISPLAY")
	if x11 == "" && wayland == "" {
		// without a display, xdg-open could start a browser inside this terminal
		return nil, errors.New("no display was found, and BROWSER is not set")
	}
	return []string{"xdg-open"}, nil
}
