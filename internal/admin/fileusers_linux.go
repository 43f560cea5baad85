package admin

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// findFileUsers returns the processes that have the file at path open, except this process. It finds only processes
// whose open files this user may list.
func findFileUsers(path string) (found []fileUser) {
	want, err := os.Stat(path)
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", e.Name(), "fd")
		files, _ := os.ReadDir(dir) // files of other users' processes cannot be read
		for _, f := range files {
			if open, err := os.Stat(filepath.Join(dir, f.Name())); err == nil && os.SameFile(open, want) {
				name, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
				found = append(found, fileUser{pid, strings.TrimSpace(string(name))})
				break
			}
		}
	}
	return found
}
