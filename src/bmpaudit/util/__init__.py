"""What every part uses: errors, plain values, files, streams of random numbers, progress."""
