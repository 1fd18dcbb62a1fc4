"""What a running pipeline tells about itself."""
