package configfile

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// writerName is the name of a test binary that is to rewrite a file for as long as it lives.
const writerName = "disk-writer"

// size is how long the file is: more than one write takes to the disk at once.
const size = 1 << 20

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[0] == writerName {
		os.Exit(writer(os.Args[1]))
	}
	os.Exit(m.Run())
}

// version is what the file holds after so many changes.
func version(n int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%015d\n", n)), size/16) }

// versionOf says which version a file is; false where it is none, or parts of several.
func versionOf(data []byte) (int, bool) {
	if len(data) == 0 {
		return 0, true
	}
	first, _, _ := strings.Cut(string(data[:min(len(data), 16)]), "\n")
	n, err := strconv.Atoi(first)
	return n, err == nil && bytes.Equal(data, version(n))
}

// writer rewrites the file, over and over, and prints each version as soon as Rewrite has come back.
func writer(path string) int {
	for {
		n := 0
		err := RewriteFile(path, func(before FileState) (FileState, error) {
			was, whole := versionOf(before.Data)
			if !whole {
				return FileState{}, fmt.Errorf("a writer found %d bytes of no version", len(before.Data))
			}
			n = was + 1
			return FileState{version(n), true}, nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if _, err := fmt.Println(n); err != nil {
			return 1
		}
	}
}

// TestKilledWhileItRewrites kills writers at random points: the file is one version, whole, that or a later one than
// was acknowledged, and the next writer goes on.
func TestKilledWhileItRewrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for round := range 6 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args, cmd.Stderr = []string{writerName, path}, t.Output()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(stdout)
		hear := func(most int) {
			for ; most > 0 && said.Scan(); most-- {
				n, err := strconv.Atoi(said.Text())
				if err != nil || n <= last {
					t.Fatalf("after version %d it says %q", last, said.Text())
				}
				last = n
			}
		}
		if round > 0 { // the first dies while it starts
			hear(1 + rand.IntN(5))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		hear(1_000_000)
		_ = cmd.Wait() // it was killed
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		n, whole := versionOf(data)
		if !whole || n < last || n > last+1 {
			t.Fatalf("round %d: version %d was acknowledged, and the file is version %d, whole: %v",
				round, last, n, whole)
		}
		last = n
	}
	if last == 0 {
		t.Error("no process got to write anything")
	}
}
