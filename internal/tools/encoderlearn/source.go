package main

import (
	"bytes"
	"crypto/sha512"
	_ "embed" // for sources.tsv
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A source is one version of a package from which entries are read. The licence of the package permits training.
type source struct{ registry, name, version, licence, sum string }

//go:embed sources.tsv
var sourceTable string

// sources returns the sources in the order of sources.tsv.
func sources() ([]source, error) {
	lines := strings.Split(strings.TrimSpace(sourceTable), "\n")
	var out []source
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("read the sources: %q", line)
		}
		out = append(out, source{f[0], f[1], f[2], f[3], f[4]})
	}
	return out, nil
}

// fetch returns the directory with the files of a source. It downloads the source if it is not in the cache.
func (s *source) fetch(cache string) (string, error) {
	if s.registry == "go" {
		return s.fetchModule()
	}
	dir := filepath.Join(cache, strings.NewReplacer("@", "", "/", "-").Replace(s.name)+"-"+s.version)
	if err := s.unpack(dir); err != nil {
		return "", fmt.Errorf("fetch %s: %w", s.name, err)
	}
	return filepath.Join(dir, "package"), nil
}

func (s *source) fetchModule() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", s.name+"@"+s.version).Output()
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: %s", s.name, err, out)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("fetch %s: %w", s.name, err)
	}
	if got.Sum != s.sum {
		return "", fmt.Errorf("fetch %s: the sum is %s, want %s", s.name, got.Sum, s.sum)
	}
	return got.Dir, nil
}

// unpack verifies the checksum of an npm package and unpacks it into dir. If its archive does not exist, unpack
// downloads it first. It does not run scripts of the package.
func (s *source) unpack(dir string) error {
	archive := dir + ".tgz"
	if _, err := os.Stat(archive); err != nil {
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return err
		}
		cmd := exec.Command("npm", "pack", "--silent", "--ignore-scripts", s.name+"@"+s.version)
		cmd.Dir = filepath.Dir(dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
		}
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	sum := sha512.Sum512(data)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != s.sum {
		return fmt.Errorf("the sum is %s, want %s", got, s.sum)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return exec.Command("tar", "--no-same-owner", "-xzf", archive, "-C", dir).Run()
}
